"""What the site is made of besides the pages of this folder; ``conf.py`` calls it at each build.

- ``pages``: notebooks and pages from other folders, and their links.
- ``reference``: pages of the API, from the public names.
- ``operations``: the table of ops with the names of other libraries, which ``names`` has found.
- ``figures``: the figures of the benchmarks as pictures.
- ``recording``: the recorded explorer of the option book.

What they write lies in ``docs/_made``, which git ignores.
"""
