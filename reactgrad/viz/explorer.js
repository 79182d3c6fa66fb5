// The explorer's page: draws the messages that come in, sends what the user does. No network, no build.
//
// in:  graph  nodes, edges, states, controls     view   boxes, lines and frames, laid out
//      frame  states that differ, runs           why    facts of one node
//      busy   whether something is computed,     running  nodes that are being computed
//             and what is to run for it          problem  a line of text, or ""
// out: open {page}, shut, set {key, value}, cancel, why {key}, view {layer, focus}, settle
//
// The answer to a page's open carries that page's number; other pages of the same widget ignore it.
//
// All text that comes in is shown by textContent, after `plain`; nothing is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 156, HEIGHT = 60; // of a box, as in _layout.py
const READABLE = 0.65; // the smallest scale that is chosen for a reader
const QUIET = 500; // milliseconds without a change after which a field counts as at rest
const MOST_RUNS = 200; // runs that can be shown again
const MOST_HITS = 12, MOST_INPUTS = 60;
const WORDS = {
  clean: "clean", stale: "stale", running: "running", ran: "ran", cut_off: "cut off",
  error: "error", unset: "unset", gone: "not there", folded: "scope",
};
const ORDER = ["gone", "clean", "unset", "cut_off", "ran", "stale", "running", "error"];
const GLYPHS = { input: "▷ ", param: "◆ ", const: "■ " };
const LAYERS = { values: "values", gradients: "adjoints", all: "values and adjoints" };

export default {
  render({ model, el }) {
    const page = new Explorer(model, el);
    return () => page.close();
  },
};

// --- text ---------------------------------------------------------------------------------------

/** Return any text on one line, without characters that control how others are shown. */
function plain(text, most = 200) {
  const line = String(text).slice(0, 4 * most).replace(/\s+/gu, " ").replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/gu, "\uFFFD");
  return line.length > most ? line.slice(0, most - 1) + "…" : line;
}

/** Do the same line by line. */
function plainLines(text) {
  return String(text).split("\n").map((line) => (line.match(/^ */)[0] + plain(line, 1000))).join("\n");
}

const count = (n) => n.toLocaleString("en-US");
const some = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

function time(ms) {
  if (ms >= 1000) return `${(ms / 1000).toPrecision(3)} s`;
  return ms >= 0.1 ? `${ms.toPrecision(3)} ms` : `${(ms * 1000).toPrecision(3)} µs`;
}

const ruler = document.createElement("canvas").getContext("2d");
/** Return the text, cut to a width in pixels. */
function fitted(text, font, width) {
  ruler.font = font;
  if (ruler.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ruler.measureText(text.slice(0, middle) + "…").width <= width) low = middle;
    else high = middle - 1;
  }
  return text.slice(0, low) + "…";
}

// --- elements -----------------------------------------------------------------------------------

function put(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
const html = (tag, attributes = {}, ...children) => put(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => put(document.createElementNS(SVG, tag), attributes, children);

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// --- the graph as far as the page has it ----------------------------------------------------------

class Known {
  constructor(message) {
    this.timeline = []; // of {run, states: what differs from the entry before}
    this.dropped = 0; // runs that were dropped from the timeline
    this.base = new Map(); // states before the first entry
    this.loose = new Map(); // what differs since the last entry
    this.learn(message);
    this.base = new Map(this.now);
  }

  /** Take in nodes and edges, also after an edit. */
  learn(message) {
    this.nodes = new Map(message.nodes.map((node) => [node.key, node]));
    this.now = new Map(Object.entries(message.states).map(([key, state]) => [+key, asState(state)]));
    this.parents = new Map(message.nodes.map((node) => [node.key, []]));
    this.children = new Map(message.nodes.map((node) => [node.key, []]));
    const seen = new Set();
    for (const [parent, child] of message.edges) {
      if (seen.has(`${parent} ${child}`)) continue;
      seen.add(`${parent} ${child}`);
      this.parents.get(child).push(parent);
      this.children.get(parent).push(child);
    }
    this.lines = message.lines;
    this.targets = message.targets;
    this.computed = message.nodes.filter((node) => !node.gone && !isLeaf(node)).length;
  }

  frame(message) {
    for (const [key, state] of Object.entries(message.states)) {
      this.now.set(+key, asState(state));
      this.loose.set(+key, asState(state));
    }
    message.runs.forEach((run, i) => {
      const last = i === message.runs.length - 1;
      // Between two frames the actions of each run are known, but not all values after it.
      this.timeline.push({ run, states: last ? this.loose : new Map(), whole: last });
    });
    if (message.runs.length) this.loose = new Map();
    while (this.timeline.length > MOST_RUNS) {
      for (const [key, state] of this.timeline.shift().states) this.base.set(key, state);
      this.dropped += 1;
    }
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

  /** Return the nodes that a change of a node makes stale, and all nodes that a read would then run. */
  preview(key) {
    const open = new Map([...this.children].map(([parent, children]) =>
      [parent, children.filter((child) => !this.nodes.get(child).marks.includes("pinned"))]));
    const cone = this.reach([key], open);
    cone.delete(key);
    const asked = this.reach(this.targets, this.parents);
    const plan = [], states = this.now;
    for (const node of this.nodes.values()) {
      const state = states.get(node.key);
      if (!state || isLeaf(node) || !asked.has(node.key)) continue;
      if (cone.has(node.key) || state.state === "stale") plan.push(node.key);
    }
    let cost = 0, unknown = 0;
    for (const planned of plan) {
      const ms = states.get(planned).ms;
      if (ms == null) unknown += 1;
      else cost += ms;
    }
    return { cone, plan: new Set(plan), cost, unknown };
  }
}

const isLeaf = (node) => node.type !== "op" && node.type !== "function";

function asNode([key, name, type, op, gradient, marks, cutoff, line, gone]) {
  return { key, name, type, op, gradient, marks, cutoff, line, gone };
}

function asState([state, outcome, version, shape, value, ms, error]) {
  return { state, outcome, version, shape, value, ms, error };
}

function lookOf(state) {
  if (!state) return "gone"; // removed, or not there yet
  if (state.state === "clean" && (state.outcome === "ran" || state.outcome === "cut_off")) return state.outcome;
  return state.state;
}

/** "ran 7 of 212, 3 cut off, 41x less work": by time where all times are known, else by count. */
function headline(run, states, nodes) {
  const parts = [`ran ${count(run.ran.length)} of ${count(run.nodes)}`];
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
  const spent = run.ran.reduce((sum, key) => sum + (run.times[key] ?? 0), 0);
  if (run.ran.length && run.ran.length < run.nodes) {
    const factor = known && spent > 0 ? all / spent : run.nodes / run.ran.length;
    const what = known && spent > 0 ? "less work" : "fewer nodes";
    if (factor >= 1.05) parts.push(`${factor >= 10 ? Math.round(factor) : factor.toFixed(1)}× ${what}`);
  }
  parts.push(time(run.seconds * 1000));
  return parts.join(", ");
}

// --- shapes: each look has one of its own, so that it is known in grey, too ---------------------------

function outline(look, w, h) {
  const x = w / 2, y = h / 2, c = 11;
  const round = (r) => `M${-x + r} ${-y}H${x - r}A${r} ${r} 0 0 1 ${x} ${-y + r}V${y - r}A${r} ${r} 0 0 1 ${x - r} ${y}` +
    `H${-x + r}A${r} ${r} 0 0 1 ${-x} ${y - r}V${-y + r}A${r} ${r} 0 0 1 ${-x + r} ${-y}Z`;
  const octagon = (d) => `M${-x + c + d} ${-y + d}H${x - c - d}L${x - d} ${-y + c + d}V${y - c - d}L${x - c - d} ${y - d}` +
    `H${-x + c + d}L${-x + d} ${y - c - d}V${-y + c + d}Z`;
  switch (look) {
    case "stale": return `M${-x + c} ${-y}H${x - c}L${x} 0L${x - c} ${y}H${-x + c}L${-x} 0Z`;
    case "ran": return round(y);
    case "cut_off": return octagon(0);
    case "error": return octagon(0) + octagon(4);
    case "running": return `M${-x} ${-y}H${x - c}L${x} 0L${x - c} ${y}H${-x}L${-x + c} 0Z`;
    case "folded": return `M${-x} ${-y}H${-x + 46}L${-x + 50} ${-y + 4}H${x}V${y}H${-x}Z`;
    default: return round(6);
  }
}

// --- the page ---------------------------------------------------------------------------------------

class Explorer {
  constructor(model, el) {
    this.model = model;
    this.known = null;
    this.view = null;
    this.boxes = []; // of {box, group, shape, rows, ...}: what is drawn
    this.boxOf = new Map(); // from the key of a node to its drawn box
    this.at = null; // the run that is shown; null: now
    this.chosen = null; // key of the node that the panel explains
    this.facts = new Map(); // facts of nodes that have arrived
    this.hovered = null;
    this.trail = []; // focuses to go back to
    this.pending = new Map(); // values to send
    this.fields = new Map(); // of inputs that may be set here, by key
    this.values = new Map(); // values of these inputs that arrived since
    this.busy = this.stopping = false;
    this.planned = new Set(); // nodes that the present run has still to compute
    this.running = new Set();
    this.page = Math.random();
    this.due = 0;
    this.draws = 0;
    this.place = { x: 0, y: 0, scale: 1 };
    this.build(el);
    this.hear = (message) => this.receive(message);
    model.on("msg:custom", this.hear);
    this.say({ kind: "open", page: this.page });
  }

  close() {
    this.model.off("msg:custom", this.hear);
    cancelAnimationFrame(this.due);
    this.fields.forEach(({ later }) => clearTimeout(later));
    this.sizes.disconnect();
    this.say({ kind: "shut" });
  }

  say(message) {
    this.model.send(message);
  }

  // --- what comes in

  receive(message) {
    if (message.page != null && message.page !== this.page) return;
    switch (message.kind) {
      case "graph":
        message = { ...message, nodes: message.nodes.map(asNode) };
        if (message.edit && this.known) this.known.learn(message);
        else this.known = new Known(message);
        this.live = message.live;
        this.root.classList.toggle("rg-live", message.live);
        this.compared = message.compared;
        setText(this.title, plain(message.title));
        this.listControls(message);
        this.listLayers();
        break;
      case "view":
        this.view = message;
        this.lay();
        break;
      case "frame":
        this.known.frame(message);
        for (const told of message.controls ?? []) {
          this.values.set(told.key, told);
          this.follow(told.key);
        }
        if (this.chosen != null && this.live && this.at == null) this.say({ kind: "why", key: this.chosen });
        break;
      case "why":
        this.facts.set(message.key, message);
        break;
      case "busy":
        this.busy = message.busy;
        this.stopping = false;
        this.planned = new Set(message.planned);
        this.running = new Set();
        break;
      case "running":
        this.running = new Set(message.keys);
        break;
      case "problem":
        setText(this.problem, plainLines(message.text));
        break;
    }
    this.draw();
  }

  // --- what it consists of

  build(el) {
    const button = (text, label, onclick, more = {}) =>
      html("button", { type: "button", "aria-label": label, title: label, onclick, ...more }, text);
    this.title = html("h2", { dir: "auto" });
    this.status = html("p", { class: "rg-status", role: "status" });
    this.note = html("p", { class: "rg-note" });
    this.problem = html("p", { class: "rg-problem", role: "alert" });
    this.hint = html("p", { class: "rg-preview", "aria-live": "polite" });
    this.search = html("input", {
      type: "search", placeholder: "find a node  ( / )", "aria-label": "find a node by its name", autocomplete: "off",
      oninput: () => this.find(), onkeydown: (event) => this.inSearch(event),
    });
    this.hits = html("ul", { class: "rg-hits", role: "listbox", "aria-label": "nodes found", hidden: true });
    this.layer = html("select", { "aria-label": "layer", onchange: () => this.look({ layer: this.layer.value }) });
    this.back = button("←  back", "back to the former part", () => this.goBack(), { class: "rg-back", hidden: true });
    this.stop = button("cancel", "stop computing", () => this.cancel(), { class: "rg-cancel", hidden: true });
    this.settle = button("accept changes", "stop marking what was added and removed",
      () => this.say({ kind: "settle" }), { hidden: true });
    this.lines = svg("g", { class: "rg-lines" });
    this.frames = svg("g", { class: "rg-frames", "aria-hidden": "true" });
    this.shapes = svg("g", { class: "rg-boxes" });
    this.canvas = svg("g", {}, this.frames, this.lines, this.shapes);
    this.map = svg("svg", {
      class: "rg-map", role: "group", "aria-label": "graph: arrow keys move along edges, Enter explains, + and - zoom",
      onpointerdown: (event) => this.drag(event), onwheel: (event) => this.wheel(event), onkeydown: (event) => this.key(event),
    }, svg("defs", {}, svg("marker", {
      id: "rg-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse",
    }, svg("path", { d: "M0 0L8 4L0 8Z", class: "rg-tip" })), svg("marker", {
      id: "rg-bar", viewBox: "0 0 4 10", refX: 2, refY: 5, markerWidth: 5, markerHeight: 12, markerUnits: "userSpaceOnUse", orient: "auto",
    }, svg("path", { d: "M1 0H3V10H1Z", class: "rg-tip" }))), this.canvas);
    this.controls = html("section", { class: "rg-controls", "aria-label": "inputs" });
    this.panel = html("section", { class: "rg-panel", "aria-label": "why", hidden: true });
    this.scrub = html("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "recorded runs", oninput: () => this.goTo(+this.scrub.value) });
    this.runText = html("output", { class: "rg-run" });
    this.legend = html("ul", { class: "rg-legend", "aria-label": "legend" });
    for (const look of ["clean", "stale", "running", "ran", "cut_off", "error", "unset"]) {
      this.legend.append(html("li", {}, svg("svg", { viewBox: "-40 -32 80 64", "aria-hidden": "true", class: "rg-key" },
        svg("path", { d: outline(look, 72, 48), class: `rg-shape rg-${look}` })), WORDS[look]));
    }
    this.root = html("div", { class: "rg-explorer", role: "application", "aria-label": "graph explorer", onkeydown: (event) => this.anyKey(event) },
      html("header", {}, this.title, this.status, this.note, this.problem),
      html("div", { class: "rg-bar", role: "toolbar", "aria-label": "view" },
        html("span", { class: "rg-search" }, this.search, this.hits), this.layer,
        button("−", "zoom out", () => this.zoom(1 / 1.3)), button("+", "zoom in", () => this.zoom(1.3)),
        button("fit", "show all", () => this.fit(true)), this.back, this.settle, this.stop),
      this.controls,
      html("div", { class: "rg-stage" }, this.map, html("div", { class: "rg-below" }, this.legend, this.hint)),
      this.panel,
      html("footer", {}, button("◀", "former run", () => this.goTo((this.at ?? this.known.timeline.length) - 1)), this.scrub,
        button("▶", "next run", () => this.goTo((this.at ?? this.known.timeline.length) + 1)),
        button("now", "the present state", () => this.goTo(Infinity)), this.runText));
    el.append(html("div", { class: "rg-outer" }, this.root));
    // An extra line above the map must not move the part that is in view.
    this.sizes = new ResizeObserver(([{ contentRect }]) => {
      if (contentRect.width !== this.width && this.view && !this.moved) this.fit();
      this.width = contentRect.width;
    });
    this.sizes.observe(this.map);
  }

  listControls(message) {
    this.values.clear();
    this.fields.clear();
    const made = message.controls.map((control) => this.control(control, this.known.nodes.get(control.key)));
    this.controls.replaceChildren(html("h3", {}, "inputs"), ...made);
    const tell = (text) => this.controls.append(html("p", { class: "rg-note" }, text));
    this.recorded = [];
    if (!message.live) {
      const leaves = message.nodes.filter((node) => (node.type === "input" || node.type === "param") && !node.gradient);
      for (const node of leaves.slice(0, MOST_INPUTS)) {
        const value = html("span", { class: "rg-value", dir: "auto" });
        this.recorded.push([node.key, value]);
        this.controls.append(html("button", {
          type: "button", class: "rg-leaf", onclick: () => this.goToNode(node.key), onpointerenter: () => this.hover(node.key),
          onpointerleave: () => this.hover(null), onfocus: () => this.hover(node.key), onblur: () => this.hover(null),
        }, html("span", { class: "rg-name", title: plain(node.name), dir: "auto" }, plain(node.name, 60)), value));
      }
      if (leaves.length > MOST_INPUTS) tell(`${some(leaves.length - MOST_INPUTS, "more input")}: search finds them.`);
      tell("These are recorded runs: step through them below. Where the graph is, in a notebook, g.explore() has fields here.");
    } else if (message.more_controls) tell(`${some(message.more_controls, "more input")}: set in code.`);
    else if (!made.length) tell("No input is a number or a switch: set them in code.");
  }

  /** Make the fields of one input. They also show a value that was set elsewhere. */
  control({ key, type, value, low, high }, node) {
    const name = plain(node.name), fields = [];
    const made = { type, size: value.length, touched: -Infinity, later: 0 };
    const send = (next) => {
      made.touched = performance.now();
      this.pending.set(key, next);
      this.draw();
    };
    const put = (field, shown) => {
      if (field !== document.activeElement && field.value !== String(shown)) field.value = shown; // unless the user types there
    };
    if (type === "toggle") {
      fields.push(html("input", { type: "checkbox", "aria-label": name, checked: value, onchange: (event) => send(event.target.checked) }));
      made.show = (told) => { fields[0].checked = told.value; };
    } else if (type === "numbers") {
      let values = [...value];
      values.forEach((part, i) => fields.push(html("input", {
        type: "number", step: "any", value: part, "aria-label": `${name}, element ${i}`,
        oninput: (event) => {
          if (event.target.value === "") return;
          values[i] = +event.target.value;
          send([...values]);
        },
      })));
      made.show = (told) => {
        values = [...told.value];
        values.forEach((part, i) => put(fields[i], part));
      };
    } else {
      const step = type === "integer" ? 1 : "any";
      const slider = html("input", { type: "range", min: low, max: high, value, step: type === "integer" ? 1 : (high - low) / 400, "aria-label": name });
      const field = html("input", { type: "number", step, value, "aria-label": `${name}, as a number` });
      slider.addEventListener("input", () => { field.value = slider.value; send(+slider.value); });
      field.addEventListener("input", () => {
        if (field.value === "") return;
        slider.value = field.value;
        send(+field.value);
      });
      fields.push(slider, field);
      made.show = (told) => {
        if (told.value < +slider.min || told.value > +slider.max) [slider.min, slider.max] = [told.low, told.high];
        slider.value = told.value;
        put(field, told.value);
      };
    }
    made.element = html("div", {
      class: `rg-control rg-${type}`, "data-key": key, onpointerenter: () => this.hover(key), onpointerleave: () => this.hover(null),
      onfocusin: () => this.hover(key), onfocusout: () => { this.hover(null); this.follow(key); },
    }, html("span", { class: "rg-name", title: name, dir: "auto" }, plain(node.name, 60)), ...fields);
    this.fields.set(key, made);
    return made.element;
  }

  /** Show in the fields of an input what it holds, except while the user moves them. */
  follow(key) {
    const made = this.fields.get(key), told = this.values.get(key);
    if (!made || !told) return;
    clearTimeout(made.later);
    const wait = QUIET - (performance.now() - made.touched);
    if (wait > 0) made.later = setTimeout(() => this.follow(key), wait);
    else if (made.type === told.type && made.size === told.value.length) made.show(told);
    else made.element.replaceWith(this.control(told, this.known.nodes.get(key)));
  }

  listLayers() {
    const offered = [...this.known.nodes.values()].some((node) => node.gradient) ? Object.keys(LAYERS) : ["values"];
    this.layer.replaceChildren(...offered.map((layer) => html("option", { value: layer }, LAYERS[layer])));
    this.layer.hidden = offered.length === 1;
    if (this.view) this.layer.value = this.view.layer;
  }

  // --- a view, drawn anew

  lay() {
    const { view } = this;
    this.layer.value = view.layer;
    this.frames.replaceChildren(...view.frames.map((frame) => svg("g", {},
      svg("rect", { x: frame.x, y: frame.y, width: frame.width, height: frame.height, rx: 8 }),
      setSvgText(svg("text", { x: frame.x + 8, y: frame.y + 14 }), plain(frame.label, 40)))));
    this.lines.replaceChildren(...view.lines.map((line) => svg("path", {
      d: line.path, class: `rg-line${line.detached ? " rg-detached" : ""}${line.read ? " rg-read" : ""}${line.mark ? ` rg-${line.mark}` : ""}`,
      "marker-end": line.detached ? "url(#rg-bar)" : "url(#rg-arrow)",
    })));
    // Weights, beside the middle of their lines.
    [...this.lines.childNodes].forEach((path, i) => {
      const { label } = view.lines[i];
      if (!label) return;
      const { x, y } = path.getPointAtLength(path.getTotalLength() * 0.45);
      this.lines.append(setSvgText(svg("text", { x, y: y + 3, class: "rg-weight" }), plain(label, 12)));
    });
    this.boxOf.clear();
    this.boxes = view.boxes.map((box, i) => {
      const shape = svg("path", { class: "rg-shape" });
      const rows = [-13, 4, 20].map((y, row) => svg("text", { y, class: `rg-row${row}` }));
      const drawn = { box, shape, rows, told: "" };
      drawn.group = svg("g", {
        class: "rg-box", transform: `translate(${box.x} ${box.y})`, role: "button", tabindex: -1, "data-key": box.node ?? box.key,
        onclick: () => this.choose(drawn), onpointerenter: () => this.hover(box.node, drawn), onpointerleave: () => this.hover(null),
        onfocus: () => this.hover(box.node, drawn), onblur: () => this.hover(null),
      }, shape, ...rows);
      for (const [side, y, word] of [["parents", -HEIGHT / 2 - 4, view.across ? "←" : "↑"], ["children", HEIGHT / 2 + 12, view.across ? "→" : "↓"]]) {
        const more = view.more[side][i];
        if (more) drawn.group.append(setSvgText(svg("text", { y, x: 52, class: "rg-more" }), `${word} +${count(more)}`));
      }
      for (const key of box.members) this.boxOf.set(key, drawn);
      return drawn;
    });
    this.shapes.replaceChildren(...this.boxes.map((drawn) => drawn.group));
    if (this.boxes.length) this.boxes[0].group.setAttribute("tabindex", 0);
    this.back.hidden = !view.focus;
    this.settle.hidden = !this.compared;
    this.moved = false;
    this.fit();
    if (this.wanted != null && this.boxOf.has(this.wanted)) this.bringUp(this.wanted);
    this.wanted = null;
  }

  // --- a frame: at most once for each that the browser shows

  draw() {
    if (!this.due) this.due = requestAnimationFrame(() => { this.due = 0; this.drawNow(); });
  }

  drawNow() {
    if (!this.known) return;
    this.root.dataset.draws = ++this.draws;
    for (const [key, value] of this.pending) this.say({ kind: "set", key, value });
    this.pending.clear();
    const { known } = this, { timeline } = known;
    const states = this.states = this.at == null ? this.present() : known.statesAfter(this.at);
    const run = timeline.at(this.at ?? -1)?.run;
    this.drawBoxes(states, this.hovered == null ? null : known.preview(this.hovered));
    setText(this.status, this.busy || this.running.size ? this.computingText() : run ? headline(run, states, known.nodes) : `nothing has run yet; ${some(known.computed, "node")}`);
    setText(this.note, this.view ? this.noteText() : "");
    this.stop.hidden = !this.busy;
    this.root.classList.toggle("rg-busy", this.busy);
    this.scrub.max = timeline.length;
    this.scrub.value = this.at == null ? timeline.length : this.at;
    this.scrub.disabled = !timeline.length;
    const stale = this.at == null && [...states.values()].filter((state) => state.state === "stale").length;
    const partly = this.at != null && !timeline[this.at].whole ? " (values were not kept)" : "";
    setText(this.runText, this.at != null ? `run ${count(this.at + 1 + known.dropped)} of ${count(timeline.length + known.dropped)}${partly}`
      : stale ? `now: ${count(stale)} stale` : timeline.length ? `now, after run ${count(timeline.length + known.dropped)}` : "no runs yet");
    for (const [key, field] of this.recorded) setText(field, plain(states.get(key)?.value ?? "", 40));
    this.drawPanel();
  }

  /** Describe the present state, and what is being computed. */
  present() {
    const { now } = this.known;
    if (!this.planned.size && !this.running.size) return now;
    const states = new Map(now);
    for (const [keys, state] of [[this.planned, "stale"], [this.running, "running"]]) {
      for (const key of keys) {
        const before = now.get(key);
        if (before) states.set(key, { ...before, state, outcome: null, value: "", error: "" });
      }
    }
    return states;
  }

  computingText() {
    const { nodes } = this.known, names = [...this.running].map((key) => nodes.get(key)).filter(Boolean).map((node) => plain(node.name, 60));
    const parts = names.length ? [names.slice(0, 3).join(", ")] : [];
    if (this.stopping) return `cancelling …${names.length ? ` once ${parts[0]} has ended` : ""}`;
    if (this.planned.size) parts.push(`${count(this.planned.size)} to run`);
    return parts.length ? `computing … ${parts.join("; ")}` : "computing …";
  }

  noteText() {
    const { view } = this, shown = view.total - view.hidden, folded = this.boxes.filter(({ box }) => box.node == null);
    const parts = [view.hidden ? `shows ${count(shown)} of ${some(view.total, "node")}: ${count(view.hidden)} are hidden, search finds them`
      : `shows ${view.focus ? "a part: " : "all "}${some(view.total, "node")}`];
    if (folded.length) parts.push(`${some(new Set(folded.flatMap(({ box }) => box.members)).size, "node")} in ${some(folded.length, "folded scope")}, opened by a click`);
    if (view.layer !== "all") {
      const other = [...this.known.nodes.values()].filter((node) => node.gradient === (view.layer === "values")).length;
      if (other) parts.push(`${count(other)} ${view.layer === "values" ? "adjoints" : "values"} in the other layer`);
    }
    return parts.join("; ");
  }

  drawBoxes(states, preview) {
    for (const drawn of this.boxes) {
      const { box } = drawn;
      if (box.node != null && !this.known.nodes.has(box.node)) continue; // removed; the view without it is on its way
      const told = box.node == null ? this.ofScope(box, states, preview) : this.ofNode(box, states.get(box.node), preview);
      const signature = JSON.stringify(told);
      if (signature === drawn.told) continue;
      drawn.told = signature;
      const shape = box.node == null ? "folded" : told.look;
      drawn.shape.setAttribute("d", outline(shape, WIDTH, HEIGHT));
      drawn.shape.setAttribute("class", `rg-shape rg-${told.look}`);
      drawn.group.dataset.look = told.look;
      drawn.group.setAttribute("class", `rg-box ${told.classes.join(" ")}`);
      drawn.group.setAttribute("aria-label", told.label);
      told.rows.forEach((text, i) => {
        setText(drawn.rows[i], fitted(text, i ? "12px system-ui, sans-serif" : "600 13px system-ui, sans-serif", WIDTH - 26));
      });
    }
  }

  classesOf(box, preview, members) {
    const classes = [];
    if (box.mark === "added" || box.mark === "removed") classes.push(`rg-${box.mark}`);
    if (members.includes(this.chosen)) classes.push("rg-chosen");
    if (preview) {
      if (members.some((key) => preview.plan.has(key))) classes.push("rg-plan");
      else if (members.some((key) => preview.cone.has(key))) classes.push("rg-cone");
      else if (!members.includes(this.hovered)) classes.push("rg-dim");
    }
    return classes;
  }

  ofNode(box, state, preview) {
    const node = this.known.nodes.get(box.node), look = lookOf(state);
    const classes = this.classesOf(box, preview, [box.node]);
    if (node.gradient) classes.push("rg-adjoint");
    const mark = { added: "+ ", removed: "− " }[box.mark] ?? "";
    const name = mark + (GLYPHS[node.type] ?? "") + plain(box.label);
    const spent = state?.ms == null ? [] : [time(state.ms)];
    const words = !state ? [box.mark || WORDS.gone] : classes.includes("rg-plan") ? ["↻ will run", ...spent]
      : [`v${state.version}`, ...(look === "clean" ? [] : [WORDS[look]]), ...spent, ...(node.cutoff ? ["cutoff"] : []), ...node.marks];
    const value = state ? (state.state === "error" ? plain(state.error) : plain(state.value || state.shape)) : "";
    const label = [plain(node.name), node.gradient ? "adjoint" : node.type, WORDS[look], box.mark, ...node.marks,
      state && `version ${state.version}`, value, classes.includes("rg-plan") && "will run"];
    return { look, classes, rows: [name, value, words.join(" · ")], label: label.filter(Boolean).join(", ") };
  }

  ofScope(box, states, preview) {
    const counts = {};
    for (const key of box.members) {
      const look = lookOf(states.get(key));
      counts[look] = (counts[look] ?? 0) + 1;
    }
    const looks = Object.keys(counts).sort((a, b) => ORDER.indexOf(b) - ORDER.indexOf(a));
    const parts = looks.map((look) => `${count(counts[look])} ${WORDS[look]}`);
    const classes = ["rg-scope", ...this.classesOf(box, preview, box.members)];
    const planned = preview ? box.members.filter((key) => preview.plan.has(key)).length : 0;
    const rows = [`▸ ${plain(box.label)}`, parts.join(", "), planned ? `${count(planned)} will run` : some(box.members.length, "node")];
    return { look: looks[0] ?? "clean", classes, rows, label: `scope ${plain(box.key)}, ${some(box.members.length, "node")}: ${parts.join(", ")}${planned ? `, ${planned} will run` : ""}` };
  }

  // --- what is asked

  hover(key, drawn = null) {
    if (drawn) {
      this.boxes.forEach(({ group }) => group.setAttribute("tabindex", -1));
      drawn.group.setAttribute("tabindex", 0);
    }
    const node = key == null ? null : this.known.nodes.get(key);
    const settable = node?.type === "input" || node?.type === "param";
    this.hovered = settable && !node.gone && this.at == null ? key : null;
    if (this.hovered == null) {
      setText(this.hint, "");
    } else {
      const { cone, plan, cost, unknown } = this.known.preview(key);
      const about = plan.size === unknown ? "" : `, about ${time(cost)}${unknown ? ` and ${unknown} never measured` : ""}`;
      setText(this.hint, `a change of ${plain(node.name, 40)} makes ${some(cone.size, "node")} stale; a read then runs ${count(plan.size)}${about}`);
    }
    this.draw();
  }

  choose(drawn) {
    if (drawn.box.node == null) this.look({ focus: drawn.box.key });
    else this.explain(drawn.box.node);
  }

  explain(key) {
    this.chosen = key;
    this.panel.hidden = false;
    this.root.classList.add("rg-open");
    this.say({ kind: "why", key });
    this.draw();
  }

  dismiss() {
    this.chosen = null;
    this.panel.hidden = true;
    this.root.classList.remove("rg-open");
    this.draw();
  }

  drawPanel() {
    const node = this.known.nodes.get(this.chosen);
    if (!node) {
      this.panel.hidden = true;
      this.root.classList.remove("rg-open");
      return;
    }
    const state = this.states.get(node.key), facts = this.at == null ? this.facts.get(node.key) : null;
    const moved = this.movedParents(node.key);
    const signature = JSON.stringify([node.key, state, facts, moved, this.at]);
    if (signature === this.panelTold) return;
    this.panelTold = signature;
    const rows = [
      ["state", WORDS[lookOf(state)]], ["version", state && String(state.version)],
      ["value", state && (facts?.value || state.value), "pre"], ["type", state?.shape],
      ["error", state?.error], ["computed by", isLeaf(node) ? node.type : node.op],
      ["cutoff", facts?.cutoff || (node.cutoff ? "yes" : "")], ["marks", node.marks.join(", ")],
      ["time", state?.ms == null ? "" : time(state.ms)], ["gradient norm", facts?.gradient], ["built at", this.known.lines[node.line]],
    ];
    const list = html("dl");
    for (const [word, text, tag] of rows) {
      if (!text) continue;
      const shown = tag === "pre" ? html("pre", { dir: "auto" }, plainLines(text)) : html("span", { dir: "auto" }, plain(text, 1000));
      list.append(html("dt", {}, word), html("dd", {}, shown));
    }
    const link = ([key, text]) => html("li", {}, html("button", { type: "button", dir: "auto", onclick: () => this.goToNode(key) }, text));
    const parents = (this.known.parents.get(node.key) ?? []).map((key) => {
      const change = moved.get(key), version = this.states.get(key)?.version;
      const name = plain(this.known.nodes.get(key).name, 60);
      return [key, change ? `${name}: version ${change[0]} → ${change[1]}` : `${name}: version ${version ?? "?"}`];
    });
    const children = (this.known.children.get(node.key) ?? []).map((key) => [key, plain(this.known.nodes.get(key).name, 60)]);
    const most = 24;
    const listed = (word, items) => items.length ? [html("h4", {}, `${word} (${count(items.length)})`), html("ul", {}, ...items.slice(0, most).map(link),
      ...(items.length > most ? [html("li", {}, `… ${count(items.length - most)} more`)] : []))] : [];
    this.panel.replaceChildren(
      html("button", { type: "button", class: "rg-close", "aria-label": "close", onclick: () => this.dismiss() }, "×"),
      html("h3", { dir: "auto" }, plain(node.name, 300)),
      ...(facts?.text ? [html("pre", { class: "rg-why", dir: "auto" }, plainLines(facts.text))] : []),
      list, ...listed("computed from", parents), ...listed("used by", children));
  }

  /** For a node of the run that is shown: the parents that had changed since it ran before. */
  movedParents(key) {
    const { timeline } = this.known, at = this.at ?? timeline.length - 1, moved = new Map();
    if (!timeline[at]?.run.ran.includes(key)) return moved;
    let before = at - 1;
    while (before >= 0 && !timeline[before].run.ran.includes(key)) before -= 1;
    const then = this.known.statesAfter(before), now = this.known.statesAfter(at);
    for (const parent of this.known.parents.get(key) ?? []) {
      const versions = [then.get(parent)?.version, now.get(parent)?.version];
      if (versions[0] != null && versions[0] !== versions[1]) moved.set(parent, versions);
    }
    return moved;
  }

  look({ layer = this.view.layer, focus = "" }) {
    if (focus && focus !== this.view.focus) this.trail.push(this.view.focus);
    if (!focus) this.trail = [];
    this.say({ kind: "view", layer, focus });
  }

  goBack() {
    const focus = this.trail.pop() ?? "";
    this.say({ kind: "view", layer: this.view.layer, focus });
  }

  goToNode(key) {
    this.explain(key);
    if (this.boxOf.get(key)?.box.node === key) this.bringUp(key);
    else {
      this.wanted = key;
      const scope = this.boxOf.get(key);
      this.look({ focus: this.live || !scope ? `#${key}` : scope.box.key });
    }
  }

  cancel() {
    this.stopping = true;
    this.say({ kind: "cancel" });
    this.draw();
  }

  goTo(position) {
    const { length } = this.known.timeline;
    this.at = position >= length || !length ? null : Math.max(0, position);
    this.hovered = null;
    setText(this.hint, "");
    this.draw();
  }

  // --- search

  find() {
    const text = this.search.value.trim().toLowerCase();
    const found = [];
    if (text) {
      for (const node of this.known.nodes.values()) {
        if (!node.gone && node.name.toLowerCase().includes(text)) found.push(node);
      }
    }
    found.sort((a, b) => a.name.length - b.name.length);
    this.found = found;
    this.picked = 0;
    this.hits.hidden = !text;
    this.hits.replaceChildren(...found.slice(0, MOST_HITS).map((node, i) => html("li", {
      role: "option", dir: "auto", "aria-selected": i === 0, onpointerdown: (event) => { event.preventDefault(); this.pick(node); },
    }, plain(node.name, 60))));
    if (text && !found.length) this.hits.append(html("li", { class: "rg-note" }, "no node has that in its name"));
    if (found.length > MOST_HITS) this.hits.append(html("li", { class: "rg-note" }, `… ${count(found.length - MOST_HITS)} more`));
  }

  pick(node) {
    this.hits.hidden = true;
    this.search.value = "";
    this.goToNode(node.key);
  }

  inSearch(event) {
    const most = Math.min(this.found?.length ?? 0, MOST_HITS);
    if (event.key === "Enter" && most) this.pick(this.found[this.picked]);
    else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && most) {
      this.picked = (this.picked + (event.key === "ArrowDown" ? 1 : most - 1)) % most;
      [...this.hits.children].forEach((item, i) => item.setAttribute("aria-selected", i === this.picked));
      event.preventDefault();
    } else if (event.key === "Escape") this.hits.hidden = true;
    event.stopPropagation(); // a notebook has keys of its own
  }

  // --- moving about

  anyKey(event) {
    if (event.target.matches("input, select")) {
      event.stopPropagation();
      return;
    }
    if (event.key === "/") this.search.focus();
    else if (event.key === "Escape") {
      if (this.busy) this.cancel();
      else this.dismiss();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  key(event) {
    const drawn = this.boxes.find(({ group }) => group === document.activeElement);
    const steps = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    if (event.key === "+" || event.key === "=") this.zoom(1.3);
    else if (event.key === "-") this.zoom(1 / 1.3);
    else if (event.key === "0") this.fit(true);
    else if ((event.key === "Enter" || event.key === " ") && drawn) this.choose(drawn);
    else if (steps[event.key]) this.step(drawn ?? this.boxes[0], ...steps[event.key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Go to the nearest box in a direction, along edges where they lead that way. */
  step(from, dx, dy) {
    if (!from) return;
    const here = this.boxes.indexOf(from);
    const along = this.view.across ? dx : dy;
    const joined = new Set(this.view.lines.flatMap((line) => (line.from === here ? [line.to] : line.to === here ? [line.from] : [])));
    const leads = [...joined].some((j) => (this.boxes[j].box.x - from.box.x) * dx + (this.boxes[j].box.y - from.box.y) * dy > 0);
    let best = null, least = Infinity;
    this.boxes.forEach((other, i) => {
      const x = other.box.x - from.box.x, y = other.box.y - from.box.y;
      const ahead = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
      if (other === from || ahead < 1 || (along && !joined.has(i) && leads)) return;
      const far = ahead + 2 * aside;
      if (far < least) [best, least] = [other, far];
    });
    if (!best) return;
    best.group.focus({ preventScroll: true });
    this.intoSight(best);
  }

  apply() {
    const { x, y, scale } = this.place;
    this.canvas.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
  }

  /** Show everything, if it can be read at that size or was asked for; else the part that matters. */
  fit(all = false) {
    const { width, height } = this.map.getBoundingClientRect();
    if (!width || !this.view || !this.boxes.length) return;
    const pad = 20;
    const whole = Math.min((width - 2 * pad) / this.view.width, (height - 2 * pad) / this.view.height, 1.25);
    const scale = all ? whole : Math.max(whole, READABLE);
    this.place = { scale, x: (width - this.view.width * scale) / 2, y: (height - this.view.height * scale) / 2 };
    if (whole < scale) {
      const states = this.known.now;
      const rank = ({ box }) => Math.max(...box.members.map((key) => ORDER.indexOf(lookOf(states.get(key)))));
      const first = this.boxes.reduce((best, drawn) => (rank(drawn) > rank(best) ? drawn : best));
      this.place.x = Math.min(pad, Math.max(width / 2 - first.box.x * scale, width - this.view.width * scale - pad));
      this.place.y = Math.min(pad, Math.max(height / 2 - first.box.y * scale, height - this.view.height * scale - pad));
      if (this.view.width * scale < width) this.place.x = (width - this.view.width * scale) / 2;
      if (this.view.height * scale < height) this.place.y = (height - this.view.height * scale) / 2;
    }
    this.apply();
  }

  zoom(factor, at = null) {
    const box = this.map.getBoundingClientRect();
    const x = at ? at.x - box.left : box.width / 2, y = at ? at.y - box.top : box.height / 2;
    const scale = Math.min(4, Math.max(0.02, this.place.scale * factor)), by = scale / this.place.scale;
    this.place = { scale, x: x - (x - this.place.x) * by, y: y - (y - this.place.y) * by };
    this.moved = true;
    this.apply();
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY / 300), { x: event.clientX, y: event.clientY });
  }

  drag(event) {
    if (event.button) return;
    const start = { x: event.clientX, y: event.clientY, ...{ px: this.place.x, py: this.place.y } };
    const move = (next) => {
      if (Math.abs(next.clientX - start.x) + Math.abs(next.clientY - start.y) < 4 && !this.moved) return;
      this.moved = true;
      this.place.x = start.px + next.clientX - start.x;
      this.place.y = start.py + next.clientY - start.y;
      this.apply();
    };
    const end = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
  }

  intoSight({ box }) {
    const { width, height } = this.map.getBoundingClientRect(), { scale } = this.place;
    const x = box.x * scale + this.place.x, y = box.y * scale + this.place.y;
    const inside = x > WIDTH * scale / 2 && x < width - WIDTH * scale / 2 && y > HEIGHT * scale / 2 && y < height - HEIGHT * scale / 2;
    if (!inside) {
      this.place.x += width / 2 - x;
      this.place.y += height / 2 - y;
      this.moved = true;
      this.apply();
    }
  }

  bringUp(key) {
    const drawn = this.boxOf.get(key);
    if (this.place.scale < 0.7) {
      this.place.scale = 0.9;
      this.moved = true;
      this.apply();
    }
    this.intoSight(drawn);
    drawn.group.focus({ preventScroll: true });
  }
}

function setSvgText(element, text) {
  element.textContent = text;
  return element;
}
