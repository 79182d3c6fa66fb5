// Places for the boxes of a view that the page makes itself, by dagre (MIT), which is a part of the page.

import { HEIGHT, WIDTH } from "./shapes.js";

const MOST_CHILDREN = 32; // as in _layout.py: one line of a box with more takes part in the layout
const PAGE = 1.5; // about the ratio of width to height of the page
const MOST_FRAMES = 12; // nested frames, as in _dot.py; deeper scopes share the innermost
// dagre places boxes in frames, but around some nests it ends with an x that is no number, or raises. Other ranks are
// other nests, and without frames it always finds places.
const TRIES = [{ ranker: "network-simplex", nested: true }, { ranker: "tight-tree", nested: true }, { ranker: "network-simplex", nested: false }];

/** Return a view of `pictureOf` with places, in the form of the views of _layout.py. */
export function arranged(view) {
  const across = fitsAcross(view), { placed, width, height, points, frames } = firstPlaces(view, across);
  const boxes = view.boxes.map((box, i) => ({ ...box, x: placed[i].x, y: placed[i].y }));
  const lines = view.lines.map((line, i) => ({ ...line, path: points[i] ? curve(points[i]) : straight(boxes[line.from], boxes[line.to]) }));
  return { ...view, boxes, lines, width, height, across, frames };
}

/** Return the frames around boxes: each scope once, with the places of its boxes, outer frames first. */
function framesOf(boxes) {
  const found = new Map();
  boxes.forEach(({ scope }, i) => {
    for (let depth = 1; depth <= Math.min(scope.length, MOST_FRAMES); depth += 1) {
      const key = JSON.stringify(scope.slice(0, depth));
      if (!found.has(key)) found.set(key, { key, outer: depth > 1 ? JSON.stringify(scope.slice(0, depth - 1)) : null, label: scope[depth - 1], depth, boxes: [] });
      found.get(key).boxes.push(i);
    }
  });
  return [...found.values()];
}

function firstPlaces(view, across) {
  for (const how of TRIES) {
    const frames = how.nested ? framesOf(view.boxes) : [];
    try {
      const found = places(view, across, frames, how.ranker);
      const all = [...found.placed, ...found.frames, ...found.points.flat().filter(Boolean)];
      if (all.every(({ x, y }) => Number.isFinite(x) && Number.isFinite(y))) return found;
    } catch (error) {
      if (!frames.length) throw error;
    }
  }
  throw new Error("dagre found no places"); // not even without frames
}

function places(view, across, frames, ranker) {
  const graph = new dagre.graphlib.Graph({ compound: true });
  graph.setGraph({ ranker, rankdir: across ? "LR" : "TB", nodesep: 16, ranksep: 34, marginx: 4, marginy: 4 });
  graph.setDefaultEdgeLabel(() => ({}));
  view.boxes.forEach((box, i) => graph.setNode(String(i), { width: WIDTH, height: HEIGHT }));
  for (const { key, outer } of frames) {
    graph.setNode(key, {});
    if (outer) graph.setParent(key, outer);
  }
  for (const { key, boxes } of frames) boxes.forEach((i) => graph.setParent(String(i), key)); // inner frames come last
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
    frames: frames.map(({ key, label }) => { const { x, y, width: w, height: h } = graph.node(key); return { label, x: x - w / 2, y: y - h / 2, width: w, height: h }; }),
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
