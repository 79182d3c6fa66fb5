"""Pictures of graphs, drawn from snapshots, and the explorer: a page that shows a graph as it
changes.

- ``_ask``: from what a user asks to see to the picture of it.
- ``_picture``: the content of a picture: boxes, lines, folded scopes, and what is left out.
- ``_dot``, ``_draw``: a picture as DOT text, and as a file that Graphviz draws.
- ``_text``: names and values, which may hold anything, made safe to show.
- ``_html``: the displays of graphs, runs, plans and others in notebooks.
- ``_view``, ``_layout``: the part of a graph that the page shows at a time, and its layout by
  Graphviz.
- ``_messages``: the messages to the page; ``explorer.js`` and ``explorer.css`` are the page.
- ``_session``: connects a graph with its page; ``_explore`` makes both in a notebook.
- ``_export``: recorded runs and the page in one file, in which ``replay.js`` takes the place of the
  graph.
"""

from reactgrad.viz._ask import asked as asked
from reactgrad.viz._ask import checked as checked
from reactgrad.viz._dot import dot_text as dot_text
from reactgrad.viz._draw import draw as draw
from reactgrad.viz._draw import laid_out as laid_out
from reactgrad.viz._explore import explore as explore
from reactgrad.viz._export import export_html as export_html
from reactgrad.viz._html import html as html
from reactgrad.viz._picture import Picture as Picture
from reactgrad.viz._picture import picture as picture
