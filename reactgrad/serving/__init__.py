"""``reactgrad explore model.py``: the explorer's page of a graph in a file, served to browsers of this
machine.

- ``_model_file``: a Python file, run as a model: its graph and the files that it came from.
- ``_guard``: who may ask: the token in the address, and the names of this machine.
- ``_room``: one graph and the pages that show it; what stays when the file is saved.
- ``_page``: the page, in which ``socket.js`` takes the place of a notebook's connection.
- ``_server``: the server, and the loop that sees when a file is saved.
"""
