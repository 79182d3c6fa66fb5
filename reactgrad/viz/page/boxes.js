// A view, drawn: boxes, lines and frames, and what each box says.

import { setSvgText, setText, svg } from "./elements.js";
import { THUMB, thumb } from "./glances.js";
import { lookOf } from "./known.js";
import { HEIGHT, WIDTH, outline } from "./shapes.js";
import { GLYPHS, ORDER, WORDS, count, fitted, fittedName, fullWidth, plain, some, time } from "./text.js";

const ALONG = [0.45, 0.6, 0.3, 0.7, 0.2, 0.8, 0.12, 0.88]; // parts of a line at which its weight may stand
const WEIGHT = "10px system-ui, sans-serif"; // as in explorer.css

/** Say the axes of a shape such as float64[2, 3]: "2 × 3", "7 values". */
function axesOf(shape) {
  const axes = shape.slice(shape.indexOf("[") + 1, -1).split(", ");
  return axes.length > 1 ? axes.join(axes.length > 2 ? "×" : " × ") : some(+axes[0], "value");
}

export const Boxes = (Base) => class extends Base {
  lay() {
    const { view } = this;
    this.layer.value = view.layer;
    this.frames.replaceChildren(...view.frames.map((frame) => svg("rect", { x: frame.x, y: frame.y, width: frame.width, height: frame.height, rx: 8 })));
    this.names.replaceChildren(...view.frames.map((frame) => setSvgText(svg("text", { x: frame.x + 8, y: frame.y + 12 }), plain(frame.label, 40))));
    this.lines.replaceChildren(...view.lines.map((line) => svg("path", {
      d: line.path, "data-from": view.boxes[line.from].key, "data-to": view.boxes[line.to].key, class: `rg-line${line.detached ? " rg-detached" : ""}${line.read ? " rg-read" : ""}${line.mark ? ` rg-${line.mark}` : ""}`,
      "marker-end": line.detached ? "url(#rg-bar)" : "url(#rg-arrow)",
    })));
    this.paths = [...this.lines.childNodes];
    this.layWeights(view.lines);
    this.boxOf.clear();
    this.boxes = view.boxes.map((box, i) => {
      const shape = svg("path", { class: "rg-shape" });
      const rows = [-13, 4, 20].map((y, row) => svg("text", { y, class: `rg-row${row}` }));
      const drawn = { box, shape, rows, told: "", glance: null, thumb: null };
      drawn.group = svg("g", {
        class: "rg-box", transform: `translate(${box.x} ${box.y})`, role: "button", tabindex: -1, "data-key": box.node ?? box.key,
        onclick: () => this.choose(drawn), onpointerenter: () => this.hover(box.node, drawn), onpointerleave: () => this.hover(null),
        onfocus: () => this.hover(box.node, drawn), onblur: () => this.hover(null),
      }, shape, ...rows);
      // At opposite sides, where boxes lie close above each other; names of frames stand at the left above.
      for (const [side, y, x, word] of [["parents", -HEIGHT / 2 - 4, 52, view.across ? "←" : "↑"], ["children", HEIGHT / 2 + 12, view.across ? -52 : 52, view.across ? "→" : "↓"]]) {
        const more = view.more[side][i];
        if (more) drawn.group.append(setSvgText(svg("text", { y, x, class: "rg-more" }), `${word} +${count(more)}`));
      }
      for (const key of box.members) this.boxOf.set(key, drawn);
      return drawn;
    });
    this.shapes.replaceChildren(...this.boxes.map((drawn) => drawn.group));
    if (this.boxes.length) this.boxes[0].group.setAttribute("tabindex", 0);
    this.back.hidden = !view.focus;
    this.settle.hidden = !this.compared;
    setText(this.note, this.noteText());
    this.moved = false;
    this.layFlow();
    this.layMini();
    this.fit();
    if (this.wanted != null && this.boxOf.has(this.wanted)) this.bringUp(this.wanted);
    this.wanted = null;
  }

  /** Write weights on their lines: where each covers no other, as near to the middle as can be. */
  layWeights(lines) {
    const placed = [];
    this.paths.forEach((path, i) => {
      const text = plain(lines[i].label ?? "", 12), wide = fullWidth(text, WEIGHT) + 3, long = path.getTotalLength();
      if (!text) return;
      const free = ({ x, y }) => placed.every((other) => Math.abs(x - other.x) > (wide + other.wide) / 2 || Math.abs(y - other.y) > 12);
      const spots = ALONG.map((part) => path.getPointAtLength(long * part)), { x, y } = spots.find(free) ?? spots[0];
      placed.push({ x, y, wide });
      this.lines.append(setSvgText(svg("text", { x, y: y + 3, class: "rg-weight" }), text));
    });
  }

  drawBoxes(states, preview) {
    this.drawLines(preview);
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
      this.drawThumb(drawn, told.glance);
      told.rows.forEach((text, i) => {
        const font = i ? "12px system-ui, sans-serif" : "600 13px system-ui, sans-serif", beside = i === 1 && told.glance;
        const room = WIDTH - 26 - (beside ? THUMB.wide + 8 : 0), fits = (i ? fitted : fittedName)(text, font, room);
        // Beside its drawing, the axes of an array say more than its first element.
        setText(drawn.rows[i], beside && fits !== text ? fitted(told.axes, font, room) : fits);
      });
    }
  }

  /** Draw an array beside its text. */
  drawThumb(drawn, glance) {
    const same = JSON.stringify(glance?.slice(1, 4)) === JSON.stringify(drawn.glance?.slice(1, 4));
    drawn.glance = glance;
    if (same) return;
    drawn.thumb?.remove();
    drawn.thumb = null;
    drawn.rows[1].setAttribute("x", glance ? -(THUMB.wide + 8) / 2 : 0);
    if (glance) drawn.group.append(drawn.thumb = svg("g", { transform: `translate(${(WIDTH - 26 - THUMB.wide) / 2} 0)` }, thumb(glance)));
  }

  /** Light the lines along which a change reaches what is to run. */
  drawLines(preview) {
    const cone = preview ? new Set([...preview.cone, this.hovered]) : this.at != null ? new Set()
      : new Set([...(this.busy ? [...this.planned, ...this.running] : this.waiting), ...this.known.changes.keys()]);
    const reached = this.view.boxes.map(({ members }) => cone.size > 0 && members.some((key) => cone.has(key)));
    this.view.lines.forEach(({ from, to }, i) => this.paths[i].classList.toggle("rg-lit", reached[from] && reached[to]));
  }

  classesOf(box, preview, members) {
    const classes = [];
    if (box.mark === "added" || box.mark === "removed") classes.push(`rg-${box.mark}`);
    if (members.includes(this.chosen)) classes.push("rg-chosen");
    if (this.at == null && !this.busy && members.some((key) => this.waiting.has(key))) classes.push("rg-wait");
    if (members.some((key) => this.changed.has(key))) classes.push("rg-changed");
    const side = this.sideOf(members);
    if (side) classes.push("rg-side", `rg-${side}`);
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
      : classes.includes("rg-wait") ? ["would run", ...spent]
      : [`v${state.version}`, ...(look === "clean" ? [] : [WORDS[look]]), ...spent, ...(node.cutoff ? ["cutoff"] : []), ...node.marks];
    const now = state && (state.value || (state.was ? `was ${state.was}` : state.shape === "unknown" ? "" : state.shape));
    const value = state ? plain(state.state === "error" ? state.error : now) : "";
    const side = this.sideOf([box.node]);
    if (side) words.splice(0, words.length, { both: "in both runs", former: `only run ${count(this.other + 1 + this.known.dropped)}`, latter: "only this run" }[side]);
    const label = [plain(node.name), node.gradient ? "adjoint" : node.type, WORDS[look], box.mark, ...node.marks,
      state && `version ${state.version}`, value, classes.includes("rg-plan") && "will run"];
    const glance = this.glanceOf(box.node, state);
    const axes = glance ? axesOf(state.shape) : "";
    return { look, classes, glance, axes, rows: [name, value, words.join(" · ")], label: label.filter(Boolean).join(", ") };
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
    const waiting = classes.includes("rg-wait") ? box.members.filter((key) => this.waiting.has(key)).length : 0;
    const rows = [`▸ ${plain(box.label)}`, parts.join(", "), waiting ? `${count(waiting)} would run` : planned ? `${count(planned)} will run` : some(box.members.length, "node")];
    return { look: looks[0] ?? "clean", classes, rows, label: `scope ${plain(box.key)}, ${some(box.members.length, "node")}: ${parts.join(", ")}${planned ? `, ${planned} will run` : ""}` };
  }
};
