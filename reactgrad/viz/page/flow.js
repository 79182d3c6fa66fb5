// Gradients in the picture: lines as wide as what passes them, and a cross where none can pass.

import { svg } from "./elements.js";
import { short } from "./text.js";

const DECADES = 4; // between the widest line and the thinnest one
const WIDEST = 7, THINNEST = 1;
const WHY = {
  detached: "detached", no_grad: "built under no_grad", not_float: "the values are no floats", pinned: "pinned", frozen: "frozen",
  no_rule: "no derivative rule", zero: "the derivative is zero everywhere",
};

export const Flow = (Base) => class extends Base {
  buildFlow() {
    this.flow = null; // {adjoints: of nodes, passes, stops: of edges, by their ends}
    this.crosses = svg("g", { class: "rg-crosses" });
  }

  /** Take in where gradients pass, and where they stop. */
  takeFlow({ adjoints, passes, stops }) {
    const listed = (pairs) => {
      const found = new Map();
      for (const [key, one] of pairs) found.set(key, [...(found.get(key) ?? []), one]);
      return found;
    };
    this.flow = { adjoints: listed(adjoints), passes: listed(passes.map(([a, b, key]) => [`${a} ${b}`, key])), stops: listed(stops.map(([a, b, why]) => [`${a} ${b}`, why])) };
    this.layFlow();
  }

  /** Ask for the flow if it is to be seen. */
  wantFlow() {
    if (this.colour === "gradient") this.say({ kind: "flow" });
  }

  /** Find the contributions and the stops of each line. */
  layFlow() {
    this.currents = [];
    if (!this.flow || !this.view) return;
    const places = new Map(this.view.lines.map(({ from, to }, i) => [`${from} ${to}`, i]));
    const index = new Map(this.boxes.map((drawn, i) => [drawn, i]));
    const lineOf = (parent, child) => places.get(`${index.get(this.boxOf.get(parent))} ${index.get(this.boxOf.get(child))}`);
    this.currents = this.view.lines.map(() => ({ keys: [], stops: new Set() }));
    for (const [kind, take] of [["passes", (line, keys) => line.keys.push(...keys)], ["stops", (line, why) => why.forEach((one) => line.stops.add(one))]]) {
      for (const [ends, told] of this.flow[kind]) {
        const line = lineOf(...ends.split(" ").map(Number));
        if (line != null) take(this.currents[line], told);
      }
    }
    this.crosses.replaceChildren(...this.currents.flatMap(({ keys, stops }, i) => {
      if (!stops.size || keys.length) return [];
      const path = this.paths[i], { x, y } = path.getPointAtLength(path.getTotalLength() / 2), why = [...stops].map((one) => WHY[one]).join(", ");
      const title = svg("title");
      title.textContent = `gradients stop here: ${why}`;
      return [svg("g", { class: "rg-cross", transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, "data-why": [...stops].join(" "), "data-from": path.dataset.from, "data-to": path.dataset.to },
        title, svg("circle", { r: 7 }), svg("path", { d: "M-4 -4L4 4M-4 4L4 -4" }))];
    }));
  }

  /** Return the nodes whose sizes are needed for lines and boxes in sight. */
  flowKeys(boxes) {
    if (this.colour !== "gradient" || !this.flow) return [];
    return [...(this.currents ?? []).flatMap(({ keys }) => keys), ...boxes.flatMap(({ box }) => box.members.flatMap((key) => this.flow.adjoints.get(key) ?? []))];
  }

  /** Return the size of what a node holds: of an array its norm; null, if that is not known. */
  sizeOf(key, states) {
    const state = states.get(key);
    if (!state || state.state !== "clean") return null;
    const glance = this.glanceOf(key, state), number = Math.abs(Number(state.value || NaN));
    return glance ? glance[4] : Number.isFinite(number) ? number : null;
  }

  /** Return the size of the gradient of a node, or of an adjoint itself. */
  gradientOf(key, states) {
    if (this.known.nodes.get(key)?.gradient) return this.sizeOf(key, states);
    const sizes = (this.flow?.adjoints.get(key) ?? []).map((one) => this.sizeOf(one, states)).filter((size) => size != null);
    return sizes.length ? Math.max(...sizes) : null;
  }

  drawFlow(states) {
    const shown = this.colour === "gradient" && this.flow != null;
    this.root.classList.toggle("rg-flowing", shown);
    if (!shown && !this.flowed) return;
    this.flowed = shown;
    const sizes = this.paths.map((_, i) => {
      const found = shown ? this.currents[i].keys.map((key) => this.sizeOf(key, states)).filter((size) => size != null) : [];
      return found.length ? Math.max(...found) : null;
    });
    const most = Math.max(0, ...sizes.filter((size) => size != null));
    this.paths.forEach((path, i) => {
      const size = sizes[i], share = size ? Math.max(0, 1 + Math.log10(size / most) / DECADES) : 0;
      const width = size ? (THINNEST + (WIDEST - THINNEST) * share).toFixed(1) : "";
      if (path.style.strokeWidth !== width) path.style.strokeWidth = width;
      path.classList.toggle("rg-current", Boolean(size));
      path.classList.toggle("rg-still", shown && !size);
      if (size == null) delete path.dataset.size;
      else path.dataset.size = short(String(size));
    });
  }
};
