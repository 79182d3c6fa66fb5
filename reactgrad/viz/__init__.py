"""Pictures of graphs, drawn from snapshots: what is selected, how it looks, and who lays it out."""

from reactgrad.viz._ask import asked as asked
from reactgrad.viz._dot import dot_text as dot_text
from reactgrad.viz._draw import draw as draw
from reactgrad.viz._draw import laid_out as laid_out
from reactgrad.viz._html import html as html
from reactgrad.viz._picture import Picture as Picture
from reactgrad.viz._picture import picture as picture
