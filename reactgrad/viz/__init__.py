"""Pictures of graphs, drawn from snapshots, and the explorer: a page that shows one as it changes.

- ``_ask``, ``_picture``   what a picture shows; ``_dot``, ``_draw``: how it looks, and Graphviz
- ``_text``                names and values, which may hold anything, made fit to be shown
- ``_html``                what notebooks show of graphs, runs, plans
- ``_view``, ``_layout``   which part the page shows at a time, and where Graphviz puts it
- ``_messages``            what the page is told; ``explorer.js`` and ``.css`` are the page
- ``_session``             between a graph and its page; ``_explore``: both in a notebook
- ``_export``              recorded runs and the page in one file; ``replay.js`` stands in for the graph
"""

from reactgrad.viz._ask import asked as asked
from reactgrad.viz._dot import dot_text as dot_text
from reactgrad.viz._draw import draw as draw
from reactgrad.viz._draw import laid_out as laid_out
from reactgrad.viz._explore import explore as explore
from reactgrad.viz._export import export_html as export_html
from reactgrad.viz._html import html as html
from reactgrad.viz._picture import Picture as Picture
from reactgrad.viz._picture import picture as picture
