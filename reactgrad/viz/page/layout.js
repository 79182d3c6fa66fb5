// Places for the boxes of a view that the page makes itself, by dagre (MIT), which is a part of the page.

import { HEIGHT, WIDTH } from "./shapes.js";

const MOST_CHILDREN = 32; // as in _layout.py: one line of a box with more takes part in the layout
const PAGE = 1.5; // about the ratio of width to height of the page

/** Return a view of `pictureOf` with places, in the form of the views of _layout.py. */
export function arranged(view) {
  const across = fitsAcross(view), { placed, width, height, points } = places(view, across);
  const boxes = view.boxes.map((box, i) => ({ ...box, x: placed[i].x, y: placed[i].y }));
  const lines = view.lines.map((line, i) => ({ ...line, path: points[i] ? curve(points[i]) : straight(boxes[line.from], boxes[line.to]) }));
  return { ...view, boxes, lines, width, height, across };
}

function places(view, across) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: across ? "LR" : "TB", nodesep: 16, ranksep: 34, marginx: 4, marginy: 4 });
  graph.setDefaultEdgeLabel(() => ({}));
  view.boxes.forEach((box, i) => graph.setNode(String(i), { width: WIDTH, height: HEIGHT }));
  const children = new Map(), parents = new Map(), add = (of, i) => of.set(i, (of.get(i) ?? 0) + 1);
  for (const { from, to } of view.lines) {
    add(children, from);
    add(parents, to);
  }
  const placedHubs = new Set(), laid = view.lines.map(({ from, to }) => {
    const wide = children.get(from) > MOST_CHILDREN ? `c${from}` : parents.get(to) > MOST_CHILDREN ? `p${to}` : null;
    if (wide && placedHubs.has(wide)) return false;
    if (wide) placedHubs.add(wide);
    graph.setEdge(String(from), String(to));
    return true;
  });
  dagre.layout(graph);
  const { width = WIDTH, height = HEIGHT } = graph.graph();
  return {
    width, height, placed: view.boxes.map((_, i) => graph.node(String(i))),
    points: view.lines.map(({ from, to }, i) => (laid[i] ? graph.edge(String(from), String(to)).points : null)),
  };
}

/** Return whether a page shows the view larger with its ranks side by side: boxes are wider than high. */
function fitsAcross({ boxes, lines }) {
  const rank = boxes.map(() => 0), broad = new Map();
  for (const { from, to } of [...lines].sort((a, b) => a.from - b.from)) if (from < to) rank[to] = Math.max(rank[to], rank[from] + 1);
  for (const one of rank) broad.set(one, (broad.get(one) ?? 0) + 1);
  const deep = Math.max(0, ...rank) + 1, most = Math.max(0, ...broad.values());
  const down = Math.max(most * (WIDTH + 16) / PAGE, deep * (HEIGHT + 34));
  return Math.max(deep * (WIDTH + 34) / PAGE, most * (HEIGHT + 16)) < 0.8 * down;
}

const at = ({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`;

/** Return a smooth path through points: a quadratic curve from each middle to the next. */
function curve(points) {
  const [first, ...rest] = points, last = rest.pop();
  let path = `M${at(first)}`;
  rest.forEach((point, i) => {
    const next = rest[i + 1] ?? last;
    path += ` Q${at(point)} ${at(i + 1 < rest.length ? { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 } : next)}`;
  });
  return rest.length ? path : `${path} L${at(last)}`;
}

/** Return a line from the middle of one box to the edge of another. */
function straight(parent, child) {
  const x = parent.x - child.x, y = parent.y - child.y;
  const reach = Math.max(2 * Math.abs(x) / WIDTH, 2 * Math.abs(y) / HEIGHT, 1);
  return `M${at({ x: parent.x - x / reach, y: parent.y - y / reach })} L${at({ x: child.x + x / reach, y: child.y + y / reach })}`;
}
