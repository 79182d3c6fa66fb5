// The explorer's page: draws the messages that come in, sends what the user does. No network, no build.
//
// in:  graph  nodes, edges, states, controls     view   boxes, lines and frames, laid out
//      frame  states that differ, runs           why    facts of one node
//      begin  all of a recording was told
//      arrange {layer, focus}  nobody else makes that view: the page does
//      busy   whether something is computed,     running  nodes that are being computed
//             and what is to run for it                   and those that have ended
//      table  some rows of an array
//      mode   what a change does                 problem  a line of text, or ""
//      glances  what boxes draw of arrays        flow   where gradients pass, and where they stop
// out: open {page}, shut, set {key, value}, cancel, why {key}, view {layer, focus}, settle,
//      table {key, start, left}, mode {mode: "once" or "asked"}, compute {keys: of nodes, or null: of the targets},
//      sight {keys: of nodes whose arrays boxes draw, now and in later frames}, flow
//
// The answer to a page's open carries that page's number; other pages of the same widget ignore it.
//
// All text that comes in is shown by textContent, after `plain`; nothing is ever read as HTML.

import { Boxes } from "./boxes.js";
import { Controls } from "./controls.js";
import { html, setText, svg } from "./elements.js";
import { Flow } from "./flow.js";
import { Glances } from "./glances.js";
import { Known, asNode, headline } from "./known.js";
import { arranged } from "./layout.js";
import { Moving } from "./moving.js";
import { Panel } from "./panel.js";
import { groupWord, pictureOf } from "./picture.js";
import { Search } from "./search.js";
import { Seeing } from "./seeing.js";
import { outline } from "./shapes.js";
import { Story } from "./story.js";
import { WORDS, about, count, plain, plainLines, some } from "./text.js";

const FRAME = 15; // least milliseconds between two messages with values
const BRIEF = 40; // milliseconds of a run that is not worth a word

class Explorer extends Seeing(Story(Moving(Search(Panel(Controls(Boxes(Flow(Glances(Object))))))))) {
  constructor(model, el) {
    super();
    this.model = model;
    this.known = null;
    this.view = null;
    this.boxes = []; // of {box, group, shape, rows, ...}: what is drawn
    this.boxOf = new Map(); // from the key of a node to its drawn box
    this.at = null; // the run that is shown; null: now
    this.chosen = null; // key of the node that the panel explains
    this.facts = new Map(); // facts of nodes that have arrived
    this.tables = new Map(); // pages of tables that have arrived
    this.hovered = null;
    this.trail = []; // focuses to go back to
    this.pending = new Map(); // values to send
    this.fields = new Map(); // of inputs that may be set here, by key
    this.values = new Map(); // values of these inputs that arrived since
    this.busy = this.stopping = false;
    this.planned = new Set(); // nodes that the present run has still to compute
    this.running = new Set();
    this.ended = new Set(); // nodes that the present run has computed
    this.total = 0; // nodes of the present run
    this.waiting = new Set(); // nodes that a read would run
    this.mode = "once"; // or "asked": a change computes at once, or when that is asked for
    this.stopped = false;
    this.sent = -Infinity; // when values were sent last
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
    clearTimeout(this.looking);
    clearTimeout(this.late);
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
        else {
          this.known = new Known(message);
          this.at = null;
          this.facts.clear();
          this.forgetGlances();
          this.flow = null;
          if ("chosen" in message) this.chosen = message.chosen; // in another model
        }
        this.live = message.live;
        this.root.classList.toggle("rg-live", message.live);
        this.compared = message.compared;
        this.mode = message.mode ?? "once";
        this.waiting = new Set(message.planned ?? []);
        setText(this.title, plain(message.title));
        this.listControls(message);
        this.listLayers();
        this.wantFlow();
        break;
      case "view":
        if (this.fold !== "scope" && message.focus[0] !== "#") this.arrange({ ...message, focus: this.view.focus, fold: this.fold });
        else {
          this.view = message;
          this.lay();
        }
        break;
      case "arrange": // the answer to "view" where nobody else makes pictures
        this.arrange(message);
        break;
      case "frame":
        this.known.frame(message);
        this.takeGlances(message.glances ?? {});
        for (const [key, { start, left }] of this.tables) { // they may hold other numbers now
          if (!message.states[key]) continue;
          if (key === this.chosen) this.askTable(key, start, left);
          else this.tables.delete(key);
        }
        if (message.planned) this.waiting = new Set(message.planned);
        for (const told of message.controls ?? []) {
          this.values.set(told.key, told);
          this.follow(told.key);
        }
        if (this.chosen != null && this.live && this.at == null) this.say({ kind: "why", key: this.chosen });
        break;
      case "why":
        this.facts.set(message.key, message);
        break;
      case "begin": // of a recording: all runs have been told
        this.begin();
        break;
      case "table":
        if (message.table) this.tables.set(message.key, message.table);
        else this.tables.delete(message.key);
        break;
      case "busy":
        if (!message.busy) this.stopped = this.stopping; // what is left can go on
        this.busy = message.busy;
        this.stopping = false;
        this.planned = new Set(message.planned);
        this.total = this.planned.size;
        this.running = new Set();
        this.ended.clear();
        break;
      case "running":
        this.running = new Set(message.keys);
        for (const key of message.done ?? []) {
          this.planned.delete(key);
          this.ended.add(key);
        }
        break;
      case "glances":
        this.takeGlances(message.found);
        break;
      case "flow":
        this.takeFlow(message);
        break;
      case "mode":
        this.mode = message.mode;
        break;
      case "problem":
        setText(this.problem, plainLines(message.text));
        return;
    }
    clearTimeout(this.late);
    if (message.kind === "busy" && message.busy) this.late = setTimeout(() => this.draw(), BRIEF); // most runs have ended by then
    else this.draw();
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
    this.go = button("compute", "compute what is stale", () => this.compute(), { class: "rg-go", hidden: true });
    this.progress = html("progress", { class: "rg-progress", "aria-label": "nodes computed", hidden: true });
    this.modes = [["once", "at once", "a change computes at once what depends on it"], ["asked", "when asked", "a change only marks what depends on it"]].map(([mode, text, label]) =>
      button(text, label, () => this.say({ kind: "mode", mode }), { "data-mode": mode }));
    this.switch = html("span", { class: "rg-switch", role: "group", "aria-label": "compute" }, html("span", {}, "compute:"), ...this.modes);
    this.settle = button("accept changes", "stop marking what was added and removed",
      () => this.say({ kind: "settle" }), { hidden: true });
    this.lines = svg("g", { class: "rg-lines" });
    this.frames = svg("g", { class: "rg-frames", "aria-hidden": "true" });
    this.names = svg("g", { class: "rg-names", "aria-hidden": "true" }); // of frames: above the lines that cross them
    this.shapes = svg("g", { class: "rg-boxes" });
    this.buildGlances();
    this.buildFlow();
    this.canvas = svg("g", {}, this.frames, this.lines, this.names, this.crosses, this.shapes);
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
    this.buildStory();
    this.buildSeeing();
    this.root = html("div", { class: "rg-explorer", role: "application", "aria-label": "graph explorer", onkeydown: (event) => this.anyKey(event) },
      html("header", {}, this.title, this.status, this.about, this.note, this.problem),
      html("div", { class: "rg-bar", role: "toolbar", "aria-label": "view" },
        this.switch, this.go, this.stop, this.progress,
        html("span", { class: "rg-search" }, this.search, this.hits), this.layer, this.folds, this.colours, this.scale, this.profile,
        html("span", { class: "rg-zoom" }, button("−", "zoom out", () => this.zoom(1 / 1.3)), button("+", "zoom in", () => this.zoom(1.3)),
          button("fit", "show all", () => this.fit(true))), this.back, this.settle),
      this.controls,
      html("div", { class: "rg-stage" }, this.map, this.mini, this.compared2, html("div", { class: "rg-below" }, this.hint, this.legend)),
      this.panel,
      html("footer", {}, button("◀", "former run", () => this.goTo((this.at ?? this.known.timeline.length) - 1)), html("div", { class: "rg-line-of-runs" }, this.bars, this.scrub),
        button("▶", "next run", () => this.goTo((this.at ?? this.known.timeline.length) + 1)),
        button("now", "the present state", () => this.goTo(Infinity)), this.against, this.runText));
    el.append(html("div", { class: "rg-outer" }, this.root));
    // An extra line above the map must not move the part that is in view, unless it hides the answer.
    this.sizes = new ResizeObserver(([{ contentRect }]) => {
      if (contentRect.width !== this.width) this.wholeRows();
      const other = contentRect.width !== this.width || Math.abs(contentRect.height - this.height) > 24;
      this.width = contentRect.width;
      if (other) this.height = contentRect.height;
      if (!this.view) return;
      if (!this.moved && this.boxes.length && (other || !this.inSight(this.mainBox()))) this.fit();
      if (other && this.boxOf.has(this.chosen)) this.intoSight(this.boxOf.get(this.chosen)); // the panel may lie over it now
    });
    this.sizes.observe(this.map);
  }

  // --- a frame: at most once for each that the browser shows

  draw() {
    if (!this.due) this.due = requestAnimationFrame(() => { this.due = 0; this.drawNow(); });
  }

  /** Send what was set: at once, or, within a frame of the last time, with the next frame. */
  flush() {
    if (!this.pending.size || performance.now() - this.sent < FRAME) return;
    this.sent = performance.now();
    for (const [key, value] of this.pending) this.say({ kind: "set", key, value });
    this.pending.clear();
  }

  drawNow() {
    if (!this.known) return;
    if (this.pending.size && performance.now() - this.sent < FRAME) this.draw(); // they go with the next frame
    this.root.dataset.draws = ++this.draws;
    this.flush();
    const { known } = this, { timeline } = known;
    const states = this.states = this.at == null ? this.present() : known.statesAfter(this.at);
    const shown = this.at ?? timeline.length - 1;
    this.drawStory();
    this.changed = (this.at == null ? this.waiting.size || !timeline.length ? known.changes : timeline.at(-1).changes : timeline[this.at].changes) ?? new Map();
    const preview = this.hovered == null ? null : known.preview(this.hovered, states);
    setText(this.hint, preview ? this.hintOf(preview) : "");
    if (this.view) {
      this.drawBoxes(states, preview);
      this.drawColours(states);
      this.drawFlow(states);
      this.lookAround();
      this.drawWay();
      this.drawMini();
    }
    const waits = this.at == null && this.waiting.size > 0 && !this.busy && !this.running.size;
    const ran = shown >= 0 ? this.runLine(shown, states) : known.last ? headline(known.last, states, known) : "nothing has run yet";
    const told = waits ? (known.changes.size ? "" : `${ran}; `) + this.waitingText() : ran;
    setText(this.status, this.busy || this.running.size ? this.computingText() : told + this.unsetText(states));
    this.stop.hidden = !this.busy;
    this.progress.hidden = !this.busy || this.total < 2;
    this.progress.max = this.total || 1;
    this.progress.value = this.ended.size;
    this.go.hidden = !waits;
    setText(this.go, `${this.stopped ? "go on with" : "compute"} ${count(this.waiting.size)}`);
    this.switch.hidden = !this.live;
    for (const one of this.modes) one.setAttribute("aria-pressed", one.dataset.mode === this.mode);
    this.root.classList.toggle("rg-busy", this.busy);
    this.scrub.max = timeline.length;
    this.scrub.value = this.at == null ? timeline.length : this.at;
    this.scrub.disabled = !timeline.length;
    const stale = this.at == null && [...states.values()].filter((state) => state.state === "stale").length;
    const partly = this.at != null && !timeline[this.at].whole ? " (values were not kept)" : "";
    setText(this.runText, this.at != null ? `run ${count(this.at + 1 + known.dropped)} of ${count(timeline.length + known.dropped)}${partly}`
      : stale ? `now: ${count(stale)} stale` : timeline.length ? `now, after run ${count(timeline.length + known.dropped)}` : known.last ? "now" : "no runs yet");
    for (const [key, field] of this.recorded) {
      setText(field, plain(states.get(key)?.value ?? "", 40));
      field.parentNode.classList.toggle("rg-set", this.changed.has(key));
    }
    for (const [key, { element }] of this.fields) element.classList.toggle("rg-set", this.changed.has(key));
    if (this.profiled && this.chosen == null && !this.panel.hidden) this.drawProfile();
    else this.drawPanel();
  }

  /** Describe the present state, and what is being computed. */
  present() {
    const { now } = this.known;
    if (!this.planned.size && !this.running.size && !this.ended.size) return now;
    const states = new Map(now);
    for (const [keys, state, outcome] of [[this.planned, "stale", null], [this.running, "running", null], [this.ended, "clean", "ran"]]) {
      for (const key of keys) {
        const before = now.get(key);
        if (before) states.set(key, { ...before, state, outcome, value: "", was: before.value || before.was, error: "" });
      }
    }
    return states;
  }

  /** Say what would run, and for which change. */
  waitingText() {
    const { known } = this, { values, adjoints } = known.counts, change = known.changeText(known.changes);
    return `${change ? `${change}: ` : ""}${count(this.waiting.size)} of ${count(values + adjoints)} would run${about(this.waiting.size, known.costOf(this.waiting))}`;
  }

  /** Say which inputs have no value, so that what is computed from them cannot run. */
  unsetText(states) {
    const keys = this.at == null ? [...states].filter(([, state]) => state.state === "unset").map(([key]) => key) : [];
    const names = keys.slice(0, 3).map((key) => plain(this.known.nodes.get(key)?.name ?? "an input", 30));
    const more = keys.length > 3 ? ` and ${count(keys.length - 3)} more` : "";
    return keys.length ? `; ${names.join(", ")}${more} ${keys.length > 1 ? "have" : "has"} no value yet` : "";
  }

  /** Ask for the targets, or for one node. */
  compute(key = null) {
    this.stopped = false;
    this.say({ kind: "compute", keys: key == null ? null : [key] });
  }

  computingText() {
    const { nodes } = this.known, names = [...this.running].map((key) => nodes.get(key)).filter(Boolean).map((node) => plain(node.name, 60));
    const parts = names.length ? [names.slice(0, 3).join(", ")] : [];
    if (this.stopping) return `cancelling …${names.length ? ` once ${parts[0]} has ended` : ""}`;
    if (this.planned.size) parts.push(`${count(this.planned.size)} to run`);
    if (this.ended.size) parts.push(`${count(this.ended.size)} of ${count(this.total)} done`);
    return parts.length ? `computing … ${parts.join("; ")}` : "computing …";
  }

  /** Say how many nodes there are, and where those are that are not in sight. */
  noteText() {
    const { view } = this, { all, leaves, values, adjoints } = this.known.counts;
    const kinds = [[leaves, "inputs, params and constants"], [values, values === 1 ? "computed value" : "computed values"], [adjoints, adjoints === 1 ? "adjoint" : "adjoints"]];
    const parts = [`${some(all, "node")}: ${kinds.filter(([n]) => n).map(([n, what]) => `${count(n)} ${what}`).join(", ")}`];
    const shown = view.total - view.hidden, folded = this.boxes.filter(({ box }) => box.node == null);
    if (view.hidden) parts.push(`${count(shown)} are shown here, ${count(view.hidden)} more of this part are hidden; search finds them`);
    else if (shown < all) parts.push(`${count(shown)} are shown here`);
    if (folded.length) parts.push(`${some(new Set(folded.flatMap(({ box }) => box.members)).size, "node")} in ${groupWord(this.fold, folded.length)}, opened by a click`);
    if (view.layer === "values" && adjoints) parts.push(`${some(adjoints, "adjoint")} in the other layer`);
    if (view.layer === "gradients") parts.push(`${some(values, "computed value")} in the other layer`);
    return parts.join("; ");
  }

  // --- what is asked

  hover(key, drawn = null) {
    if (drawn) {
      this.boxes.forEach(({ group }) => group.setAttribute("tabindex", -1));
      drawn.group.setAttribute("tabindex", 0);
    }
    const node = key == null ? null : this.known.nodes.get(key);
    const settable = node?.type === "input" || node?.type === "param";
    this.hovered = settable && !node.gone && (this.at == null || !this.live) ? key : null;
    this.draw();
  }

  /** Say what a change of the input that is pointed at would do. */
  hintOf({ cone, plan, cost, unknown }) {
    const { name } = this.known.nodes.get(this.hovered);
    return `a change of ${plain(name, 40)} makes ${some(cone.size, "node")} stale; a read then runs ${count(plan.size)}${about(plan.size, { cost, unknown })}`;
  }

  /** Show no preview, until something is pointed at anew. */
  unhover() {
    this.hovered = null;
    setText(this.hint, "");
  }

  choose(drawn) {
    if (drawn.box.node == null) this.openGroup(drawn.box);
    else this.explain(drawn.box.node);
  }

  look({ layer = this.view.layer, focus = "", fold = this.fold }) {
    if (focus && focus !== this.view.focus) this.trail.push(this.view.focus);
    if (!focus) this.trail = [];
    this.show({ layer, focus, fold });
  }

  openGroup(box) {
    if (box.open || !this.view.local) return this.look({ focus: box.open ?? box.key });
    this.groups.set(`=${box.key}`, box.members);
    return this.look({ focus: `=${box.key}` });
  }

  /** Make a view here, or ask for it. */
  show({ layer, focus, fold }) {
    this.fold = this.folds.value = fold;
    if (focus[0] === "=" || (fold !== "scope" && focus[0] !== "#")) this.arrange({ layer, focus, fold });
    else this.say({ kind: "view", layer, focus });
  }

  /** Make a view in the page. */
  arrange({ layer, focus, fold }) {
    this.view = arranged(pictureOf(this.known, { layer, focus, fold, members: this.groups.get(focus) }));
    this.lay();
    this.draw();
  }

  goBack() {
    this.show({ layer: this.view.layer, focus: this.trail.pop() ?? "", fold: this.fold });
  }

  goToNode(key) {
    this.explain(key);
    if (this.boxOf.get(key)?.box.node === key) this.bringUp(key);
    else {
      this.wanted = key;
      this.look({ focus: `#${key}` });
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
    this.unhover();
    this.draw();
  }
}

export default {
  render({ model, el }) {
    const page = new Explorer(model, el);
    return () => page.close();
  },
};
