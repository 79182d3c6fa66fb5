"""A picture as DOT text, which Graphviz lays out.

Names and values are text in it, whatever they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count as counting

from reactgrad.viz._picture import Box, Line, Look, Picture
from reactgrad.viz._text import shown

# Each look differs in shape and outline, too, so that it can be told in grey.
FILLS: dict[Look, str] = {
    "clean": "#f4f4f2",
    "stale": "#ffe08a",
    "running": "#9fd0ff",
    "ran": "#a9dfb2",
    "cut_off": "#d9c8f2",
    "error": "#f5a3a3",
    "unset": "#ffffff",
}
SHAPES: dict[Look, tuple[str, str]] = {  # and style
    "clean": ("box", "filled,rounded"),
    "stale": ("hexagon", "filled,dashed"),
    "running": ("cds", "filled,bold"),
    "ran": ("ellipse", "filled"),
    "cut_off": ("octagon", "filled"),
    "error": ("doubleoctagon", "filled,bold"),
    "unset": ("box", "filled,dotted"),
}
WORDS = {**{word: word for word in FILLS}, "cut_off": "cut off"}
MARKS = {"added": "#1a7f37", "removed": "#cf222e", "changed": "#9a6700"}
KINDS = {"input": "\u25b7 ", "param": "\u25c6 ", "const": "\u25a0 "}
FEED = "#e4e4e4"  # what takes an argument, whatever its state, which its badge says
INK, GRADIENT = "#333333", "#5b2a86"  # outlines, and words in boxes of adjoints
LINES, LOOSE = "#7b7b7b", "#777777"  # on the page itself: read on white and on black
FONT = '"Helvetica,Arial,sans-serif"'
MOST_FRAMES = 12  # nested frames; deeper scopes share the innermost
MOST_LETTERS, MOST_OF_TOOLTIP = 32, 300


def dot_text(picture: Picture, title: str = "", *, across: bool = False) -> str:
    """Return the picture in the DOT language.

    Parameters
    ----------
    picture
        The picture to draw.
    title
        The text above it.
    across
        True: parents are left of their children, not above.
    """
    # Nodes are identified by their keys; names appear only in labels.
    ids = {
        box.key: box.key if box.key.isdecimal() else f"box {position}"
        for position, box in enumerate(picture.boxes)
    }
    if picture.hidden:
        title = f"{title}  ({picture.hidden:,} of {picture.total:,} nodes are not shown)".strip()
    lines = [
        "digraph {",
        f"  graph [rankdir={'LR' if across else 'TB'}, bgcolor=transparent]",
        f'  graph [labelloc=t, fontname={FONT}, fontsize=12, fontcolor="{LOOSE}", label={quoted(title)}]',
        f'  node [fontname={FONT}, fontsize=10, margin="0.08,0.04"]',
        f'  edge [arrowsize=0.6, color="{LINES}", fontcolor="{LOOSE}"]',
        *scopes(picture.boxes, lambda box: _node(box, ids[box.key])),
        *[_edge(line, ids) for line in picture.lines],
        *_left_out(picture, ids),
        "}",
    ]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """Return any text as a DOT string that shows exactly that text."""
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(plain, escaped)
    return f'"{text}"'


def scopes(
    boxes: Iterable[Box],
    node: Callable[[Box], str],
    depth: int = 0,
    numbers: Iterator[int] | None = None,
) -> Iterator[str]:
    """Yield the boxes as DOT, with a frame around those of each scope.

    Scopes are as deep as the code that named them.
    """
    numbers = counting() if numbers is None else numbers
    inner: dict[str, list[Box]] = {}
    for box in boxes:
        if len(box.scope) > depth:
            inner.setdefault(box.scope[depth], []).append(box)
        else:
            yield node(box)
    for name, members in inner.items():
        yield f'  subgraph "cluster {next(numbers)}" {{'
        yield f'    label={quoted(shown(name, MOST_LETTERS))}; color="#9b9b9b"; style=rounded'
        if depth + 1 < MOST_FRAMES:
            yield from scopes(members, node, depth + 1, numbers)
        else:
            yield from map(node, members)
        yield "  }"


def _node(box: Box, name: str) -> str:
    """Return the line of a box."""
    shape, style = SHAPES[box.look]
    attributes = {
        "shape": shape,
        "fillcolor": FILLS[box.look],
        "style": style,
        "color": MARKS.get(box.mark, INK),
        "label": "\n".join(_label(box)),
        "tooltip": _tooltip(box),
    }
    if box.node is None:
        attributes["shape"] = "folder"
    elif box.node.feed and box.look != "error":
        attributes |= {"shape": "ellipse", "fillcolor": FEED, "style": "filled,dashed"}
    elif box.node.gradient:
        attributes["fontcolor"] = GRADIENT
        attributes["peripheries"] = "2" if box.look != "error" else "3"
    if box.mark:
        attributes["penwidth"] = "2.5"
    listed = ", ".join([f"{word}={quoted(value)}" for word, value in attributes.items()])
    return f"    {quoted(name)} [{listed}]"


def _label(box: Box) -> Iterator[str]:
    """Yield the lines of a box's label."""
    node = box.node
    if node is None:
        yield shown(box.label, MOST_LETTERS)
        yield ", ".join([f"{count:,} {WORDS[seen]}" for seen, count in box.inside])
        return
    yield KINDS.get(node.kind, "") + shown(box.label, MOST_LETTERS)
    if node.value:
        yield shown(node.value, MOST_LETTERS)
    yield shown(f"v{node.version}  {node.shape}", MOST_LETTERS)
    badges = [
        *([box.mark] if box.mark else []),
        *([WORDS[box.look]] if box.look != "clean" else []),
        *[word for word in ("frozen", "pinned", "kept") if getattr(node, word)],
        *(["cutoff"] if node.cutoff else []),
        *([f"{node.seconds * 1e3:.3g} ms"] if node.seconds is not None else []),
    ]
    if badges:
        yield ", ".join(badges)


def _tooltip(box: Box) -> str:
    node = box.node
    if node is None:
        return f"scope {shown(box.key, MOST_OF_TOOLTIP)}"
    words = [node.name, node.op, node.shape, f"version {node.version}", WORDS[box.look]]
    words += [text for text in (node.error, node.line) if text]
    return shown(" | ".join(words), MOST_OF_TOOLTIP)


def _edge(line: Line, ids: dict[str, str]) -> str:
    """Return the line of an edge."""
    attributes: dict[str, str] = {}
    if line.detached:  # no gradient passes
        attributes |= {"style": "dashed", "arrowhead": "tee"}
    elif line.read:
        attributes["style"] = "dotted"
    if line.mark:
        attributes |= {"color": MARKS[line.mark], "penwidth": "2"}
    if line.label:
        attributes |= {"label": line.label, "fontsize": "9"}
    listed = ", ".join([f"{name}={quoted(value)}" for name, value in attributes.items()])
    return f"  {quoted(ids[line.parent])} -> {quoted(ids[line.child])}" + (
        f" [{listed}]" if listed else ""
    )


def _left_out(picture: Picture, ids: dict[str, str]) -> Iterator[str]:
    """Yield stubs that say how many neighbours of a box are not shown."""
    sides = (("parents", picture.more_parents), ("children", picture.more_children))
    for side, counts in sides:
        for key, count in counts.items():
            stub = quoted(f"more {side} {ids[key]}")
            yield f'  {stub} [shape=plaintext, fontcolor="{LOOSE}", label="+{count:,}"]'
            ends = (stub, quoted(ids[key])) if side == "parents" else (quoted(ids[key]), stub)
            yield f'  {ends[0]} -> {ends[1]} [style=dotted, arrowhead=none, color="{LINES}"]'
