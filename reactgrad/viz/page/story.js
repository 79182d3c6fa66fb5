// The runs so far: what caused each, bars for nodes and time, and two runs side by side.

import { html, setText } from "./elements.js";
import { headline } from "./known.js";
import { count, plain, short, some, time } from "./text.js";

const MOST_VALUES = 4; // of targets that two runs gave other values
const SMALL = 100; // nodes of a run that can be looked at

export const Story = (Base) => class extends Base {
  buildStory() {
    this.bars = html("div", { class: "rg-bars", "aria-hidden": "true" });
    this.against = html("select", { "aria-label": "compare with", title: "show what this run and another one ran", onchange: () => this.compareWith(this.against.value) });
    this.compared2 = html("p", { class: "rg-compare", role: "status" });
    this.about = html("p", { class: "rg-about" });
    this.other = null; // the run to compare with
  }

  /** Say what a run ran, and for which change. */
  runLine(position, states) {
    const { known } = this, { run, changes } = known.timeline[position], change = known.changeText(changes);
    return `${change ? `${change}: ` : ""}${headline(run, states, known)}`;
  }

  /** Say the same in a few words. */
  runWord(position) {
    const entry = this.known.timeline[position], { run, changes } = entry;
    return entry.word ??= `${this.known.changeText(changes, 1) || (run.ran.length ? "read" : "nothing to do")}: ${count(run.ran.length)} ran, ${time(run.seconds * 1000)}`;
  }

  /** Show a first run of a recording that can be looked at, rather than one that ran nothing, or nearly all. */
  begin() {
    const { timeline, counts } = this.known, last = timeline.at(-1)?.run;
    const few = Math.max(SMALL, 0.1 * (counts.values + counts.adjoints));
    if (this.live || !last || last.failed.length || (last.ran.length && last.ran.length <= few)) return;
    const caused = timeline.map(({ run, changes }, i) => [run.ran.length, i, changes.size]).filter(([ran, , n]) => ran && n);
    const [best] = caused.sort(([a, i], [b, j]) => a - b || i - j);
    if (best) this.goTo(best[1]);
  }

  drawStory() {
    const { timeline, dropped } = this.known, at = this.at ?? timeline.length - 1;
    if (this.other != null && (this.other >= timeline.length || this.other === at)) this.other = null;
    const told = `${timeline.length} ${dropped} ${at} ${this.other} ${this.at == null}`;
    setText(this.about, this.live || !timeline.length ? "" : `This page replays ${some(timeline.length, "recorded run")}: after each change only what depends on it ran again. Step through the runs at the bottom; click a box to see why.`);
    if (told === this.storyTold) return;
    this.storyTold = told;
    const most = (of) => Math.max(1e-9, ...timeline.map(of)), height = (value, top) => Math.round(100 * Math.log1p(value) / Math.log1p(top));
    const nodes = most(({ run }) => run.ran.length), spent = most(({ run }) => run.seconds * 1e6);
    this.bars.replaceChildren(...timeline.map(({ run }, i) => html("div", {
      class: `rg-run-bar${i === at ? " rg-at" : ""}${i === this.other ? " rg-other" : ""}`, title: `run ${count(i + 1 + dropped)}: ${this.runWord(i)}`,
      onclick: (event) => (event.shiftKey ? this.compareWith(i) : this.goTo(i)),
    }, html("i", { class: "rg-nodes", style: `height:${height(run.ran.length, nodes)}%` }), html("i", { class: "rg-time", style: `height:${height(run.seconds * 1e6, spent)}%` }))));
    this.bars.hidden = this.against.hidden = timeline.length < 2;
    const options = timeline.map((_, i) => i).filter((i) => i !== at).slice(-60);
    this.against.replaceChildren(html("option", { value: "" }, "compare with …"), ...options.map((i) => html("option", { value: i }, `run ${count(i + 1 + dropped)}: ${plain(this.runWord(i), 60)}`)));
    this.against.value = this.other ?? "";
    setText(this.compared2, this.other == null ? "" : this.comparison(this.other, at));
    this.pair = this.other == null ? null : { first: new Set(timeline[this.other].run.ran), second: new Set(timeline[at].run.ran) };
  }

  compareWith(position) {
    this.other = position === "" || position == null ? null : +position;
    this.draw();
  }

  /** Say what two runs have in common, and what they gave. */
  comparison(one, two) {
    const { known } = this, name = (i) => `run ${count(i + 1 + known.dropped)} (${this.runWord(i)})`;
    const [first, second] = [one, two].map((i) => new Set(known.timeline[i].run.ran));
    const both = [...first].filter((key) => second.has(key)).length;
    const [before, after] = [known.statesAfter(one), known.statesAfter(two)];
    const moved = known.targets.filter((key) => before.get(key)?.value && after.get(key)?.value && before.get(key).value !== after.get(key).value);
    const values = moved.slice(0, MOST_VALUES).map((key) => `${plain(known.nodes.get(key).name, 40)} ${short(before.get(key).value)} → ${short(after.get(key).value)}`);
    return `${name(one)} and ${name(two)}: ${some(both, "node")} ran in both, ${count(first.size - both)} only in the former, ${count(second.size - both)} only in the latter` +
      (values.length ? `; ${values.join(", ")}${moved.length > MOST_VALUES ? ` and ${count(moved.length - MOST_VALUES)} more` : ""}` : "");
  }

  /** Return which of two runs ran some of these nodes. */
  sideOf(members) {
    if (!this.pair) return null;
    const [first, second] = ["first", "second"].map((side) => members.some((key) => this.pair[side].has(key)));
    return first && second ? "both" : first ? "former" : second ? "latter" : null;
  }
};
