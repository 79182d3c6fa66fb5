// The fields of inputs, and the layers to choose from.

import { html } from "./elements.js";
import { LAYERS, fittedName, plain, some } from "./text.js";

const NAME = "600 13px system-ui, sans-serif", ROOM = 200; // of a name: its font, as in explorer.css, and its pixels

export const QUIET = 500; // milliseconds without a change after which a field counts as at rest
export const MOST_INPUTS = 60;

export const Controls = (Base) => class extends Base {
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
    this.wholeRows();
  }

  /** Where the list has a greatest height, end it below a row: none is half in sight. */
  wholeRows() {
    const { style } = this.controls;
    style.maxHeight = "";
    const most = parseFloat(getComputedStyle(this.controls).maxHeight), { top, height } = this.controls.getBoundingClientRect();
    if (!(this.controls.scrollHeight > height && height >= most)) return;
    const ends = [...this.controls.children].map((row) => row.getBoundingClientRect().bottom + this.controls.scrollTop - top);
    const whole = Math.max(...ends.filter((end) => end <= most));
    if (whole > 0) style.maxHeight = `${whole + 1}px`;
  }

  /** Make the fields of one input. They also show a value that was set elsewhere. */
  control({ key, type, value, low, high }, node) {
    const name = plain(node.name), fields = [];
    const made = { type, size: value.length, touched: -Infinity, later: 0 };
    const send = (next) => {
      made.touched = performance.now();
      this.pending.set(key, next);
      this.flush();
      if (this.hovered != null || this.pending.size) this.draw(); // else what comes back is drawn
      this.unhover(); // what runs and what was cut off is to be seen now, not what would be
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
      // The value comes last: a range that has no limits and no step yet rounds it to a whole number.
      const slider = html("input", { type: "range", min: low, max: high, step: type === "integer" ? 1 : (high - low) / 400, value, "aria-label": name });
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
    }, html("span", { class: "rg-name", title: name, dir: "auto" }, fittedName(name, NAME, ROOM)), ...fields);
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
};
