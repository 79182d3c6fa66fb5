"""Reports of a loop while it runs: ``rg.progress`` and ``rg.SummaryWriter``.

- ``_progress``: a bar over batches, with rates and numbers. ``_bar``: how it is drawn.
- ``_summary_writer``: a log that TensorBoard reads, with PyTorch's names. ``_png``: its images.
- ``_numbers``: one number of a node, an array, or a function.

A node that is shown or logged is observed: nothing is computed for the sake of a report.
"""
