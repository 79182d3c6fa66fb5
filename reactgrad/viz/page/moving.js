// Keys, zoom and pan, and bringing a box into sight.

import { lookOf } from "./known.js";
import { HEIGHT, WIDTH } from "./shapes.js";
import { ORDER } from "./text.js";

export const READABLE = 0.65; // the smallest scale that is chosen for a reader

const EDGE = 10; // pixels between a box in sight and the edge of the map

export const Moving = (Base) => class extends Base {
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
    this.moveMini();
    this.lookAround();
  }

  /** Show everything, if it can be read at that size or was asked for; else the answer and what is above it. */
  fit(all = false) {
    const { width, height } = this.map.getBoundingClientRect();
    if (!width || !this.view || !this.boxes.length) return;
    const pad = 20;
    const whole = Math.min((width - 2 * pad) / this.view.width, (height - 2 * pad) / this.view.height, 1.25);
    const scale = all ? whole : Math.max(whole, READABLE);
    this.place = { scale, x: (width - this.view.width * scale) / 2, y: (height - this.view.height * scale) / 2 };
    if (whole < scale) {
      const { box } = this.mainBox();
      // Its middle in the middle, unless that leaves room free at a side.
      const along = (at, size, room) => (size * scale <= room - 2 * pad ? (room - size * scale) / 2
        : Math.min(pad, Math.max(room / 2 - at * scale, room - size * scale - pad)));
      this.place.x = along(box.x, this.view.width, width);
      this.place.y = along(box.y, this.view.height, height);
    }
    this.apply();
  }

  /** Return the box that is to be seen first: what was asked for, the answer, or what is most remarkable. */
  mainBox() {
    const asked = this.boxOf.get(+String(this.view.focus).slice(1));
    if (this.view.focus[0] === "#" && asked) return asked;
    const targets = this.known.targets.filter((key) => this.boxOf.has(key));
    const named = targets.find((key) => this.known.nodes.get(key).named);
    if (targets.length) return this.boxOf.get(named ?? targets[0]);
    const rank = ({ box }) => Math.max(...box.members.map((key) => ORDER.indexOf(lookOf(this.known.now.get(key)))));
    return this.boxes.reduce((best, drawn) => (rank(drawn) > rank(best) ? drawn : best));
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

  /** Return whether a box is in sight: as a whole, or a part of it. */
  inSight({ box }, partly = false) {
    const { width, height } = this.map.getBoundingClientRect(), { scale } = this.place;
    const x = box.x * scale + this.place.x, y = box.y * scale + this.place.y;
    const [across, down] = [WIDTH, HEIGHT].map((size) => (partly ? -1 : 1) * (size * scale / 2 + EDGE));
    return x > across && x < width - across && y > down && y < height - down;
  }

  intoSight(drawn) {
    if (this.inSight(drawn)) return;
    const { width, height } = this.map.getBoundingClientRect(), { scale } = this.place;
    this.place.x = width / 2 - drawn.box.x * scale;
    this.place.y = height / 2 - drawn.box.y * scale;
    this.moved = true;
    this.apply();
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
};
