// The graph as far as the page has it: nodes, edges, states, and the runs so far.

import { count, plain, short, time } from "./text.js";

export const MOST_RUNS = 200; // runs that can be shown again

export class Known {
  constructor(message) {
    this.timeline = []; // of {run, states: what differs from the entry before}
    this.dropped = 0; // runs that were dropped from the timeline
    this.base = new Map(); // states before the first entry
    this.loose = new Map(); // what differs since the last entry
    this.changes = new Map(); // inputs that were changed since the last entry: {old, new}
    this.learn(message);
    this.base = new Map(this.now);
  }

  /** Take in nodes and edges, also after an edit. */
  learn(message) {
    this.nodes = new Map(message.nodes.map((node) => [node.key, node]));
    this.now = new Map(Object.entries(message.states).map(([key, state]) => [+key, asState(state)]));
    this.parents = new Map(message.nodes.map((node) => [node.key, []]));
    this.children = new Map(message.nodes.map((node) => [node.key, []]));
    this.edges = message.edges;
    this.scopes = message.scopes; // lists of names, outermost first
    this.scopeKeys = new Map(); // from the path of a scope to its key
    this.paths = new Map(); // the other way
    for (const [key, path] of message.parts) {
      this.scopeKeys.set(path.join("/"), key);
      this.paths.set(key, path);
    }
    const seen = new Set();
    for (const [parent, child] of message.edges) {
      if (seen.has(`${parent} ${child}`)) continue;
      seen.add(`${parent} ${child}`);
      this.parents.get(child).push(parent);
      this.children.get(parent).push(child);
    }
    this.lines = message.lines;
    this.targets = message.targets;
    const present = message.nodes.filter((node) => !node.gone), computed = present.filter((node) => !isLeaf(node));
    const adjoints = computed.filter((node) => node.gradient).length;
    // Each total on the page is one of these, or a sum of them.
    this.counts = { all: present.length, leaves: present.length - computed.length, values: computed.length - adjoints, adjoints };
    this.last = message.last && asRun(message.last);
  }

  /** Take in states, and runs. With `part` more states are on their way, as a `rest` of the run if there was one. */
  frame(message) {
    const entry = message.rest ? this.timeline.at(-1) : null, { states, changes } = entry ?? { states: this.loose, changes: this.changes };
    for (const [text, told] of Object.entries(message.states)) {
      const key = +text, state = asState(told), before = this.now.get(key), node = this.nodes.get(key);
      // What is stale shows what it was, until something else takes its place.
      if (before && !state.value) state.was = before.value || before.was;
      if (before && node && isLeaf(node) && before.version !== state.version) {
        changes.set(key, { old: changes.get(key)?.old ?? before.value, new: state.value });
      }
      this.now.set(key, state);
      states.set(key, state);
    }
    if (message.part && message.runs.length) this.foresee(message);
    message.runs.map(asRun).forEach((run, i) => {
      const last = i === message.runs.length - 1;
      // Between two frames the actions of each run are known, but not all values after it.
      this.timeline.push({ run, states: last ? this.loose : new Map(), whole: last, changes: last ? this.changes : new Map() });
    });
    if (message.runs.length) [this.loose, this.changes] = [new Map(), new Map()];
    while (this.timeline.length > MOST_RUNS) {
      for (const [key, state] of this.timeline.shift().states) this.base.set(key, state);
      this.dropped += 1;
    }
  }

  /** Show what a run did with nodes whose states are on their way. */
  foresee({ states, runs }) {
    for (const [key, state] of this.now) if (state.outcome && !(key in states)) this.now.set(key, { ...state, outcome: null });
    const waiting = new Map();
    for (const outcome of ["skipped", "ran", "cut_off", "rebuilt", "failed"]) for (const key of runs.at(-1)[outcome]) if (!(key in states)) waiting.set(key, outcome);
    for (const [key, outcome] of waiting) {
      const before = this.now.get(key);
      if (before) this.now.set(key, { ...before, outcome, state: outcome === "failed" ? "error" : "clean", value: "", was: before.value || before.was, error: "" });
    }
  }

  /** Return the name of a node, without the scopes that are known where it is shown. */
  labelOf(node, path) {
    const outer = this.scopes[node.scope].slice(0, path.length).join("/");
    if (!node.named) return node.name.slice(node.name.lastIndexOf("/") + 1);
    return outer && outer === path.join("/") && node.name.startsWith(`${outer}/`) ? node.name.slice(outer.length + 1) : node.name;
  }

  /** Return all states right after a run. */
  statesAfter(position) {
    const states = new Map(this.base);
    for (const entry of this.timeline.slice(0, position + 1)) {
      for (const [key, state] of entry.states) states.set(key, state);
    }
    const entry = this.timeline[position];
    if (entry && !entry.whole) this.overlay(states, entry.run);
    return states;
  }

  /** Return the states of the frame before a run, changed by what the run did. */
  overlay(states, run) {
    for (const [key, state] of states) states.set(key, { ...state, outcome: null });
    for (const outcome of ["skipped", "ran", "cut_off", "rebuilt", "failed"]) {
      for (const key of run[outcome]) {
        const state = states.get(key);
        if (state) states.set(key, { ...state, outcome, state: outcome === "failed" ? "error" : "clean", value: "", error: "" });
      }
    }
  }

  reach(starts, next) {
    const found = new Set(starts), queue = [...starts];
    while (queue.length) {
      for (const other of next.get(queue.pop()) ?? []) {
        if (!found.has(other)) {
          found.add(other);
          queue.push(other);
        }
      }
    }
    return found;
  }

  /** Describe changes of inputs: "AMZN 13m volatility 0.592 → 0.621". */
  changeText(changes, most = 2) {
    const parts = [...changes].filter(([key]) => this.nodes.has(key)).map(([key, { old, new: next }]) => {
      const name = plain(this.nodes.get(key).name, 40).replaceAll("/", " "), [a, b] = [short(old), short(next)];
      return a && b && a !== b && !/\.\.\.|…/.test(a + b) ? `${name} ${a} → ${b}` : `${name} set`;
    });
    return parts.slice(0, most).join(", ") + (parts.length > most ? ` and ${count(parts.length - most)} more` : "");
  }

  /** Return what these nodes have taken, as far as it was ever measured. */
  costOf(keys) {
    let cost = 0, unknown = 0;
    for (const key of keys) {
      const ms = this.now.get(key)?.ms;
      if (ms == null) unknown += 1;
      else cost += ms;
    }
    return { cost, unknown };
  }

  /** Return the nodes that a change of a node makes stale, and all nodes that a read would then run. */
  preview(key, states = this.now) {
    const open = new Map([...this.children].map(([parent, children]) =>
      [parent, children.filter((child) => !this.nodes.get(child).marks.includes("pinned"))]));
    const cone = this.reach([key], open);
    cone.delete(key);
    const asked = this.reach(this.targets, this.parents);
    const unset = [...states].filter(([one, state]) => state.state === "unset" && one !== key).map(([one]) => one);
    const waits = this.reach(unset, open), plan = [];
    for (const node of this.nodes.values()) {
      const state = states.get(node.key);
      if (!state || isLeaf(node) || !asked.has(node.key) || waits.has(node.key)) continue;
      if (cone.has(node.key) || state.state === "stale") plan.push(node.key);
    }
    return { cone, plan: new Set(plan), ...this.costOf(plan) };
  }
}

export const isLeaf = (node) => node.type !== "op" && node.type !== "function";

export function asNode([key, name, type, op, gradient, marks, cutoff, line, gone, scope, named]) {
  return { key, name, type, op, gradient, marks, cutoff, line, gone, scope, named };
}

/** Return a run with the milliseconds of its nodes by their keys. */
export function asRun({ timed, nanoseconds, ...run }) {
  return { ...run, times: new Map(timed.map((key, i) => [key, nanoseconds[i] / 1e6])) };
}

export function asState([state, outcome, version, shape, value, ms, error]) {
  return { state, outcome, version, shape, value, ms, error };
}

export function lookOf(state) {
  if (!state) return "gone"; // removed, or not there yet
  if (state.state === "clean" && (state.outcome === "ran" || state.outcome === "cut_off")) return state.outcome;
  return state.state;
}

/** "ran 7 of 212, 3 cut off, 41x less work": by time where all times are known, else by count. */
export function headline(run, states, { nodes, counts }) {
  const then = run.nodes === counts.values + counts.adjoints ? "" : " there were then";
  const parts = [`ran ${count(run.ran.length)} of ${count(run.nodes)} computed nodes${then}`];
  for (const [word, keys] of [["cut off", run.cut_off], ["skipped", run.skipped], ["rebuilt", run.rebuilt], ["failed", run.failed]]) {
    if (keys.length) parts.push(`${count(keys.length)} ${word}`);
  }
  let all = 0, known = true;
  for (const [key, state] of states) {
    const node = nodes.get(key);
    if (!node || isLeaf(node)) continue;
    if (state.ms == null) known = false;
    else all += state.ms;
  }
  const spent = run.ran.reduce((sum, key) => sum + (run.times.get(key) ?? 0), 0);
  if (run.ran.length && run.ran.length < run.nodes) {
    const factor = known && spent > 0 ? all / spent : run.nodes / run.ran.length;
    const what = known && spent > 0 ? "less work" : "fewer nodes";
    if (factor >= 1.05) parts.push(`${factor >= 10 ? Math.round(factor) : factor.toFixed(1)}× ${what}`);
  }
  parts.push(time(run.seconds * 1000));
  return parts.join(", ");
}
