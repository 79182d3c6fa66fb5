"""Pictures of graphs, drawn from snapshots, and the explorer: a page that shows a graph as it
changes.

- ``_ask``: from what a user asks to see to the picture of it.
- ``_picture``: the content of a picture: boxes, lines, folded scopes, and what is left out.
- ``_parts``: folded scopes without lines in both directions.
- ``_neurons``: neurons as one box each, with weights at their lines.
- ``_dot``, ``_draw``: a picture as DOT text, and as a file that Graphviz draws.
- ``_svg``: a picture as SVG that fits light and dark pages.
- ``_drawing``: a still picture as an object, which shows itself in a notebook.
- ``_text``: names and values, which may hold anything, made safe to show.
- ``_html``: the displays of graphs, runs, plans and others in notebooks.
- ``_view``, ``_layout``: the part of a graph that the page shows at a time, and its layout by
  Graphviz.
- ``_messages``: the messages to the page; ``page/`` has its modules and its style, and ``_page``
  joins them.
- ``_session``: connects a graph with its page; ``_explore`` makes both in a notebook.
- ``_figures``: arrays as lines, images, histograms and tables.
- ``_paths``: texts without the author's folders.
- ``_still_page``: the page in a notebook without widgets.
- ``_export``: recorded runs and the page in one file, in which ``page/replay.js`` takes the place of the
  graph.
"""
