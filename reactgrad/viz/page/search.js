// Search by name.

import { html } from "./elements.js";
import { count, plain } from "./text.js";

export const MOST_HITS = 12;

export const Search = (Base) => class extends Base {
  find() {
    const text = this.search.value.trim().toLowerCase(), words = text.split(/\s+/);
    const found = [];
    if (text) {
      for (const node of this.known.nodes.values()) {
        const name = node.name.toLowerCase(); // all words are in it, as headlines write "IBM 7m" for IBM/7m
        if (!node.gone && (name.includes(text) || words.every((word) => name.includes(word)))) found.push(node);
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
};
