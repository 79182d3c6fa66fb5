// The content of a view that the page makes itself: boxes, and lines between them, without places.
//
// A group (a scope, the nodes of one op, a level) is one box, as long as no line then leads in both
// directions: where what follows from a group leads back into it, the group is two boxes, "book (1)"
// and "book (2)".

import { isLeaf, lookOf } from "./known.js";
import { ORDER, some } from "./text.js";

export const NEAR = 80; // nodes around one that was asked for, as in _view.py
export const MOST_BOXES = 150;

/** Return the gradients, and the constants that only these use. */
function adjoints(known) {
  const found = new Set();
  for (const node of known.nodes.values()) if (node.gradient) found.add(node.key);
  for (const node of known.nodes.values()) {
    const used = known.children.get(node.key);
    if (node.type === "const" && used.length && used.every((key) => known.nodes.get(key).gradient)) found.add(node.key);
  }
  return found;
}

function ofLayer(known, layer) {
  const present = [...known.nodes.values()].filter((node) => !node.gone).map((node) => node.key);
  if (layer === "all") return new Set(present);
  const gradients = adjoints(known), wanted = new Set(present.filter((key) => gradients.has(key) === (layer === "gradients")));
  if (layer === "gradients") for (const key of [...wanted]) for (const parent of known.parents.get(key)) wanted.add(parent);
  return wanted;
}

/** Return the nodes nearest to one, over edges in both directions. */
function around(known, key) {
  const near = new Set([key]), queue = [key];
  for (const one of queue) {
    for (const other of [...known.parents.get(one), ...known.children.get(one)]) {
      if (near.size >= NEAR) return near;
      if (near.has(other)) continue;
      near.add(other);
      queue.push(other);
    }
  }
  return near;
}

const within = (scope, path) => path.every((part, i) => scope[i] === part);

/** Return how each node is grouped: its label, and a key that scopes share with the views of _view.py. */
function grouping(known, fold, path, keys) {
  if (fold === "op") {
    return (node) => (isLeaf(node) ? { key: `${node.type}s`, label: `${node.type}s` } : { key: `op ${node.op}`, label: node.op });
  }
  if (fold === "level") {
    const level = new Map();
    for (const key of keys) level.set(key, 1 + Math.max(-1, ...known.parents.get(key).filter((p) => level.has(p)).map((p) => level.get(p))));
    return (node) => ({ key: `level ${level.get(node.key)}`, label: `level ${level.get(node.key)}` });
  }
  if (fold === "none" || path == null) return () => null;
  return (node) => {
    const scope = known.scopes[node.scope];
    let depth = 0;
    while (depth < path.length && scope[depth] === path[depth]) depth += 1;
    if (scope.length <= depth) return null;
    return { key: known.scopeKeys.get(scope.slice(0, depth + 1).join("/")), label: scope[depth], path: scope.slice(0, depth + 1) };
  };
}

/** The boxes of a view as they are found, and which of them leads to which. */
class Groups {
  constructor() {
    this.all = []; // of {group, node, members}
    this.next = []; // for each, the boxes that it leads to
    this.parts = new Map(); // the boxes of each group
    this.of = new Map(); // the box of each node
  }

  make(group, node) {
    this.next.push(new Set());
    const place = this.all.push({ group, node, members: [] }) - 1;
    if (group) this.parts.set(group.key, [...(this.parts.get(group.key) ?? []), place]);
    return place;
  }

  /** Put a node into the first box of its group that none of its parents comes after, as in _parts.py; else into a new one. */
  take(key, group, parents) {
    const from = new Set(parents.filter((parent) => this.of.has(parent)).map((parent) => this.of.get(parent)));
    const found = group && (this.parts.get(group.key) ?? []).find((place) => {
      const fresh = new Set([...from].filter((one) => one !== place && !this.next[one].has(place)));
      return !fresh.size || !this.reaches(place, fresh);
    });
    const place = found ?? this.make(group, group ? null : key);
    for (const one of from) if (one !== place) this.next[one].add(place);
    this.all[place].members.push(key);
    this.of.set(key, place);
  }

  reaches(start, wanted) {
    const seen = new Set([start]), queue = [start];
    while (queue.length) {
      for (const other of this.next[queue.pop()]) {
        if (wanted.has(other)) return true;
        if (seen.has(other)) continue;
        seen.add(other);
        queue.push(other);
      }
    }
    return false;
  }
}

/** Return a view without places, for `arranged`. */
export function pictureOf(known, { layer, focus, fold = "scope", limit = MOST_BOXES, members = null }) {
  let asked = null, path = [];
  if (focus[0] === "#") {
    asked = +focus.slice(1);
    if (known.nodes.get(asked).gradient && layer === "values") layer = "all";
  }
  const of = ofLayer(known, layer);
  let wanted = of;
  if (asked != null) {
    wanted = new Set([...around(known, asked)].filter((key) => key === asked || of.has(key)));
    path = null;
  } else if (members) {
    wanted = new Set(members);
    for (const key of members) for (const parent of known.parents.get(key)) if (of.has(parent)) wanted.add(parent);
    [fold, path] = ["none", null];
  } else if (focus) {
    path = known.paths.get(focus) ?? [];
    const inside = new Set([...of].filter((key) => within(known.scopes[known.nodes.get(key).scope], path)));
    wanted = new Set(inside);
    for (const key of inside) {
      for (const other of [...known.parents.get(key), ...known.children.get(key)]) if (of.has(other)) wanted.add(other);
    }
  }
  const keys = [...known.nodes.keys()].filter((key) => wanted.has(key)); // parents first
  const group = grouping(known, asked != null ? "none" : fold, path, keys);
  // A constant without a name is in each group that uses it: as one box it would join what has nothing in common.
  const everywhere = (node) => fold === "scope" && asked == null && node.type === "const" && !node.named;
  const found = new Groups(), loose = new Map();
  for (const key of keys) {
    const node = known.nodes.get(key), own = group(node), parents = known.parents.get(key);
    if (everywhere(node)) {
      loose.set(key, null);
      continue;
    }
    for (const parent of parents) {
      if (own || loose.get(parent) !== null) continue;
      found.take(parent, null, []);
      loose.set(parent, found.of.get(parent));
    }
    found.take(key, own, parents);
    if (own) for (const parent of parents) if (loose.has(parent) && !found.all[found.of.get(key)].members.includes(parent)) found.all[found.of.get(key)].members.push(parent);
  }
  // Frames of scopes stand around boxes, as in _dot.py, unless boxes bring together what is in different scopes.
  const framed = asked != null || members != null || fold === "scope" || fold === "none";
  const boxOf = found.of, boxes = found.all.map(({ group: of, node, members }, i) => {
    if (!of) {
      const scope = framed ? known.scopes[known.nodes.get(node).scope] : [];
      return { key: String(node), label: known.labelOf(known.nodes.get(node), framed ? scope : path ?? []), node, members, scope, mark: "" };
    }
    const all = found.parts.get(of.key), number = all.length > 1 ? all.indexOf(i) + 1 : 0;
    return { key: number > 1 ? `${of.key}(${number})` : of.key, label: of.label + (number ? ` (${number})` : ""), node: null, open: of.path ? of.key : null, members, scope: of.path?.slice(0, -1) ?? [], mark: "" };
  });
  const lines = new Map();
  for (const [parent, child, detached, read] of known.edges) {
    if (!boxOf.has(parent) || !boxOf.has(child)) continue;
    const from = boxOf.get(parent), to = boxOf.get(child), id = `${from} ${to}`;
    if (from === to || (loose.has(parent) && boxes[to].node == null)) continue;
    const line = lines.get(id);
    if (line) Object.assign(line, { detached: line.detached && detached, read: line.read && read });
    else lines.set(id, { from, to, detached, read, mark: "" });
  }
  const whole = { layer, focus, fold, boxes, lines: [...lines.values()], total: asked != null ? wanted.size : keys.length };
  return fewer(known, whole, asked, limit);
}

/** Keep the boxes that matter most, with those around them, and count at each how many more there are. */
function fewer(known, view, asked, limit) {
  const { boxes } = view, near = boxes.map(() => []);
  for (const { from, to } of view.lines) {
    near[from].push(to);
    near[to].push(from);
  }
  let kept = new Set(boxes.keys());
  if (boxes.length > limit) {
    const targets = new Set(known.targets), rank = ({ members }) => Math.max(...members.map((key) =>
      (key === asked ? 99 : targets.has(key) ? 50 : ORDER.indexOf(lookOf(known.now.get(key))))));
    const seeds = [...boxes.keys()].sort((a, b) => rank(boxes[b]) - rank(boxes[a]) || b - a);
    kept = new Set();
    for (const seed of seeds) {
      for (const queue = [seed]; queue.length && kept.size < limit;) {
        const one = queue.shift();
        if (kept.has(one)) continue;
        kept.add(one);
        queue.push(...near[one].filter((other) => !kept.has(other)));
      }
    }
  }
  const place = new Map([...kept].sort((a, b) => a - b).map((old, i) => [old, i]));
  const more = { parents: {}, children: {} }, add = (of, i) => { of[i] = (of[i] ?? 0) + 1; };
  const member = new Set([...place.keys()].flatMap((i) => boxes[i].members));
  for (const [old, i] of place) {
    for (const [side, next] of [["parents", known.parents], ["children", known.children]]) {
      const outside = new Set(boxes[old].members.flatMap((key) => next.get(key)).filter((key) => !member.has(key)));
      if (boxes[old].node != null) for (const _ of outside) add(more[side], i);
    }
  }
  return {
    ...view, kind: "view", local: true, boxes: [...place.keys()].map((old) => boxes[old]), more, frames: [],
    lines: view.lines.filter(({ from, to }) => place.has(from) && place.has(to)).map((line) => ({ ...line, from: place.get(line.from), to: place.get(line.to) })),
    hidden: view.total - member.size,
  };
}

/** Name a group of nodes for a reader. */
export const groupWord = (fold, n) => some(n, { op: "op", level: "level" }[fold] ?? "folded scope");
