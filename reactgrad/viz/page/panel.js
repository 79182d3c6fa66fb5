// The panel that explains one node.

import { html } from "./elements.js";
import { figuresOf, tableOf } from "./figures.js";
import { isLeaf, lookOf } from "./known.js";
import { WORDS, count, plain, plainLines, time } from "./text.js";

export const Panel = (Base) => class extends Base {
  explain(key) {
    this.profiled = false;
    this.chosen = key;
    this.panel.hidden = false;
    this.root.classList.add("rg-open");
    this.say({ kind: "why", key });
    this.draw();
  }

  dismiss() {
    this.profiled = false;
    this.panelTold = "";
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
    const page = this.at == null ? this.tables.get(node.key) : null;
    const signature = JSON.stringify([node.key, state, facts, [...moved], this.at, page]);
    if (signature === this.panelTold) return;
    this.panelTold = signature;
    const rows = [
      ["state", WORDS[lookOf(state)]], ["version", state && String(state.version)],
      ["value", state && !page && (facts?.value || state.value), "pre"], ["was", state && !state.value && state.was], ["type", state?.shape],
      ["error", state?.error], ["computed by", isLeaf(node) ? node.type : node.op],
      ["cutoff", facts?.cutoff || (node.cutoff ? "yes" : "")], ["marks", node.marks.join(", ")],
      ["time", state?.ms == null ? "" : time(state.ms)], ["gradient norm", facts?.gradient], ["built at", this.known.lines[node.line]],
    ];
    const list = html("dl");
    for (const [word, text, tag] of rows) {
      if (!text) continue;
      const shown = tag === "pre" ? html("pre", { dir: "auto" }, plainLines(text)) : html("span", { dir: "auto" }, plain(text, 1000));
      list.append(html("dt", {}, word), html("dd", { class: tag === "pre" && facts?.figures ? "rg-whole" : "" }, shown));
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
      ...(facts?.text ? [html("pre", { class: "rg-why", dir: "auto" }, plainLines(this.whyText(facts)))] : []),
      ...(this.live && this.at == null && state?.state === "stale" ? [html("button", { type: "button", class: "rg-go", onclick: () => this.compute(node.key) }, "compute this node")] : []),
      ...(facts?.figures ? [figuresOf(facts.figures), ...(!this.live ? [] : page ? [tableOf(page, this.panel.clientWidth - 34, (start, left) => this.askTable(node.key, start, left))]
        : [html("button", { type: "button", onclick: () => this.askTable(node.key, 0, 0) }, "as a table")])] : []),
      list,
      ...listed("computed from", parents), ...listed("used by", children));
  }

  askTable(key, start, left) {
    this.say({ kind: "table", key, start, left });
  }

  /** A live gradient, whose norm is shown, may not have been added to `.grad`. */
  whyText({ text, gradient }) {
    return gradient ? text.replace(/^no gradient: /m, ".grad is empty: ") : text;
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
};
