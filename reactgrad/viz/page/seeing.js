// Other ways to see the same: folding, colours by a measure, the way of a change, a small map, and where time goes.

import { html, put, setText, svg } from "./elements.js";
import { HEIGHT, WIDTH } from "./shapes.js";
import { count, fitted, plain, some, time } from "./text.js";

const FOLDS = { scope: "fold scopes", op: "fold by op", level: "fold by level", none: "fold nothing" };
const COLOURS = { state: "colour: state", time: "colour: time", age: "colour: runs since it ran", size: "colour: magnitude", gradient: "colour: gradient" };
const MOST_RANKED = 20, MINI = 150;
const FLAMES = 286; // least width of the times by scope
const FLAME = "11px system-ui, sans-serif"; // as in explorer.css

export const Seeing = (Base) => class extends Base {
  buildSeeing() {
    const select = (label, options, then) => html("select", { "aria-label": label, title: label, onchange: (event) => then(event.target.value) },
      ...Object.entries(options).map(([value, text]) => html("option", { value }, text)));
    this.fold = "scope";
    this.colour = "state";
    this.groups = new Map(); // members of folded groups that were opened, by focus
    this.folds = select("what is one box", FOLDS, (fold) => this.look({ fold }));
    this.colours = select("what colours say", COLOURS, (colour) => { this.colour = colour; this.wantFlow(); this.draw(); });
    this.scale = html("span", { class: "rg-scale", hidden: true });
    this.mini = svg("svg", { class: "rg-mini", "aria-hidden": "true", onpointerdown: (event) => this.fromMini(event) });
    this.profile = html("button", { type: "button", title: "where the time of a run goes", "aria-label": "where the time of this run goes", onclick: () => this.openProfile() }, "time");
  }

  // --- colours

  /** Return what a measure says of some nodes: a number, or null. */
  measure(members, states) {
    const numbers = members.map((key) => (this.colour === "gradient" ? this.gradientOf(key, states) : this.measureOf(key, states.get(key)))).filter((n) => n != null);
    return numbers.length ? (this.colour === "time" ? numbers.reduce((a, b) => a + b) : this.colour === "age" ? Math.min(...numbers) : Math.max(...numbers)) : null;
  }

  measureOf(key, state) {
    if (!state) return null;
    if (this.colour === "time") return state.ms ?? null;
    if (this.colour === "age") return this.ages.get(key) ?? null;
    const numbers = (state.value || state.was || "").match(/-?\d[\d.]*(?:e[-+]?\d+)?/gi);
    return numbers ? Math.max(...numbers.map((text) => Math.abs(Number(text))).filter(Number.isFinite), 0) : null;
  }

  drawColours(states) {
    const { timeline } = this.known, at = this.at ?? timeline.length - 1;
    if (this.colour === "age") {
      this.ages = new Map();
      for (let i = at; i >= 0; i -= 1) for (const key of timeline[i].run.ran) if (!this.ages.has(key)) this.ages.set(key, at - i);
    }
    this.scale.hidden = this.colour === "state";
    this.root.classList.toggle("rg-measured", this.colour !== "state");
    const values = this.colour === "state" ? [] : this.boxes.map(({ box }) => this.measure(box.members, states)), known = values.filter((n) => n != null);
    const [low, high] = [Math.min(...known), Math.max(...known)], log = (n) => (this.colour === "age" ? n : Math.log10(Math.max(n, 1e-12)));
    const positive = known.filter((n) => n > 0), least = this.colour === "age" ? low : Math.min(...positive, high);
    this.boxes.forEach((drawn, i) => {
      const value = values[i], share = value == null || !known.length ? null : log(high) > log(least) ? (log(Math.max(value, least)) - log(least)) / (log(high) - log(least)) : this.colour === "age" ? 0 : 1;
      const fill = this.colour === "state" ? "" : share == null ? "var(--page)" : `color-mix(in oklab, var(--heat) ${Math.round(8 + 50 * (this.colour === "age" ? 1 - share : share))}%, var(--page))`;
      if (drawn.fill !== fill) drawn.shape.style.fill = drawn.fill = fill;
    });
    const word = { time: (n) => time(n), age: (n) => (n ? `${some(n, "run")} ago` : "this run"), size: (n) => String(+n.toPrecision(3)), gradient: (n) => String(+n.toPrecision(3)) }[this.colour];
    if (word) setText(this.scale, known.length ? (this.colour === "age" ? `${word(high)}  ▁▃▅▇  ${word(low)}` : `${word(least)}  ▁▃▅▇  ${word(high)}`) : this.colour === "gradient" ? "no gradient has been computed here" : "nothing was measured yet");
  }

  // --- the way of a change

  /** Return the nodes on the shortest way from a changed input to a node, in what ran or would run. */
  wayTo(key) {
    const run = this.known.timeline[this.at ?? this.known.timeline.length - 1]?.run ?? this.known.last;
    const moved = new Set(this.at == null && this.waiting.size ? this.waiting : run?.ran ?? []), from = new Map([[key, null]]);
    if (!moved.has(key)) return [];
    const queue = [key];
    for (const one of queue) {
      if (this.changed.has(one)) {
        const way = [];
        for (let at = one; at != null; at = from.get(at)) way.push(at);
        return way;
      }
      for (const parent of this.known.parents.get(one) ?? []) {
        if (from.has(parent) || !(moved.has(parent) || this.changed.has(parent))) continue;
        from.set(parent, one);
        queue.push(parent);
      }
    }
    return [];
  }

  drawWay() {
    const way = this.chosen == null ? [] : this.wayTo(this.chosen), boxes = way.map((key) => this.boxOf.get(key));
    const steps = new Set();
    for (let i = 1; i < boxes.length; i += 1) if (boxes[i - 1] && boxes[i]) steps.add(`${this.boxes.indexOf(boxes[i - 1])} ${this.boxes.indexOf(boxes[i])}`);
    this.view.lines.forEach(({ from, to }, i) => this.paths[i].classList.toggle("rg-way", steps.has(`${from} ${to}`)));
    this.boxes.forEach((drawn) => drawn.group.classList.toggle("rg-on-way", way.length > 1 && boxes.includes(drawn)));
  }

  // --- a small map

  layMini() {
    const { width, height } = this.view, scale = Math.min(MINI / width, MINI * 0.7 / height);
    put(this.mini, { viewBox: `0 0 ${width} ${height}`, width: width * scale, height: height * scale }, []);
    this.frame = svg("rect", { class: "rg-window" });
    this.dots = this.boxes.map(({ box }) => svg("rect", { x: box.x - WIDTH / 2, y: box.y - HEIGHT / 2, width: WIDTH, height: HEIGHT }));
    this.mini.replaceChildren(...this.dots, this.frame);
  }

  drawMini() {
    this.boxes.forEach((drawn, i) => {
      const look = `rg-shape rg-${drawn.group.dataset.look}`;
      if (this.dots[i].getAttribute("class") !== look) this.dots[i].setAttribute("class", look);
    });
  }

  moveMini() {
    if (!this.frame || !this.view) return;
    const { width, height } = this.map.getBoundingClientRect(), { x, y, scale } = this.place;
    put(this.frame, { x: -x / scale, y: -y / scale, width: width / scale, height: height / scale }, []);
    const whole = x >= 0 && y >= 0 && x + this.view.width * scale <= width && y + this.view.height * scale <= height;
    this.mini.classList.toggle("rg-away", whole);
  }

  fromMini(event) {
    const box = this.mini.getBoundingClientRect(), { width, height } = this.map.getBoundingClientRect(), { scale } = this.place;
    this.place.x = width / 2 - (event.clientX - box.left) / box.width * this.view.width * scale;
    this.place.y = height / 2 - (event.clientY - box.top) / box.height * this.view.height * scale;
    this.moved = true;
    this.apply();
    event.preventDefault();
  }

  // --- where time goes

  openProfile() {
    this.chosen = null;
    this.profiled = true;
    this.panel.hidden = false;
    this.root.classList.add("rg-open");
    this.draw();
  }

  drawProfile() {
    const at = this.at ?? this.known.timeline.length - 1, run = this.known.timeline[at]?.run ?? this.known.last;
    const told = `profile ${at} ${this.known.dropped}`;
    if (told === this.panelTold) return;
    this.panelTold = told;
    const nodes = [...run?.times ?? []].map(([key, ms]) => [this.known.nodes.get(key), ms]).filter(([node]) => node).sort((a, b) => b[1] - a[1]);
    const all = nodes.reduce((sum, [, ms]) => sum + ms, 0);
    this.panel.replaceChildren(
      html("button", { type: "button", class: "rg-close", "aria-label": "close", onclick: () => this.dismiss() }, "×"),
      html("h3", {}, nodes.length ? `where ${time(all)} went: ${some(nodes.length, "node")}` : "no times were measured in this run"),
      ...(nodes.length ? [this.flames(nodes, all), html("table", { class: "rg-ranked" }, ...nodes.slice(0, MOST_RANKED).map(([node, ms]) => html("tr", {},
        html("td", {}, html("button", { type: "button", dir: "auto", onclick: () => this.goToNode(node.key) }, plain(node.name, 60))),
        html("td", {}, time(ms)), html("td", {}, `${Math.round(100 * ms / all)} %`)))),
        ...(nodes.length > MOST_RANKED ? [html("p", { class: "rg-note" }, `… ${count(nodes.length - MOST_RANKED)} more`)] : [])] : []));
  }

  /** Draw the times of a run by scope: each part as wide as its share. */
  flames(nodes, all) {
    const root = { name: "all", ms: 0, inner: new Map() }, wide = Math.max(FLAMES, this.panel.clientWidth - 34), high = 17;
    for (const [node, ms] of nodes) {
      let at = root;
      root.ms += ms;
      for (const part of [...this.known.scopes[node.scope], this.known.labelOf(node, this.known.scopes[node.scope])]) {
        if (!at.inner.has(part)) at.inner.set(part, { name: part, ms: 0, inner: new Map(), key: null });
        at = at.inner.get(part);
        at.ms += ms;
      }
      at.key = node.key;
    }
    const drawn = [];
    let deep = 0;
    const queue = [[root, 0, 0]];
    for (const [part, x, depth] of queue) {
      const width = part.ms / all * wide;
      if (width < 0.8) continue;
      deep = Math.max(deep, depth);
      drawn.push(svg("g", { class: "rg-flame", onclick: () => part.key != null && this.goToNode(part.key) },
        svg("rect", { x, y: depth * high, width: Math.max(width - 0.5, 0.5), height: high - 1, style: `fill: color-mix(in oklab, var(--heat) ${25 + Math.round(60 * part.ms / all)}%, var(--page))` }),
        put(svg("title"), {}, [`${plain(part.name, 80)}: ${time(part.ms)}`]), ...(width > 34 ? [put(svg("text", { x: x + 3, y: depth * high + 12 }), {}, [fitted(plain(part.name), FLAME, width - 6)])] : [])));
      let left = x;
      for (const inner of [...part.inner.values()].sort((a, b) => b.ms - a.ms)) {
        queue.push([inner, left, depth + 1]);
        left += inner.ms / all * wide;
      }
    }
    return svg("svg", { class: "rg-flames", width: wide, height: (deep + 1) * high, role: "img", "aria-label": "time by scope" }, ...drawn);
  }
};
