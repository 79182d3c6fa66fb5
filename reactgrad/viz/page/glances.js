// Arrays as small drawings in boxes: a line, an image or a histogram, from the letters of _glance.py.

import { svg } from "./elements.js";

export const THUMB = { wide: 54, high: 16 };

const LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-";
const SHADES = 6; // of an image: one path each, since elements for each pixel would be thousands
const LOOK_LATER = 120; // milliseconds until what has come into sight is asked for
const MOST_ASKED = 600; // as in _session.py

/** Return the level of each letter between 0 and 1; null for no finite number. */
const levels = (letters) => [...letters].map((letter) => (letter === " " ? null : LETTERS.indexOf(letter) / (LETTERS.length - 1)));

/** Return a drawing of an array, around the origin. */
export function thumb([, kind, letters, wide]) {
  const values = levels(letters);
  const drawn = { line: lineOf, image: imageOf, bins: binsOf }[kind](values, wide);
  return svg("g", { class: `rg-thumb rg-thumb-${kind}`, transform: `translate(${-THUMB.wide / 2} ${-THUMB.high / 2})` }, ...drawn);
}

const tenth = (n) => n.toFixed(1);

function lineOf(values) {
  const step = THUMB.wide / Math.max(values.length - 1, 1);
  let path = "", pen = "M";
  values.forEach((value, i) => {
    if (value == null) pen = "M";
    else {
      path += `${pen}${tenth(i * step)} ${tenth(THUMB.high * (1 - value))}`;
      pen = "L";
    }
  });
  return [svg("path", { d: path })];
}

function imageOf(values, wide) {
  const high = values.length / wide, x = THUMB.wide / wide, y = Math.min(THUMB.high / high, 2 * x), top = (THUMB.high - y * high) / 2;
  const shades = Array.from({ length: SHADES + 1 }, () => ""); // the last: no finite numbers
  values.forEach((value, i) => {
    const shade = value == null ? SHADES : Math.min(SHADES - 1, Math.floor(value * SHADES));
    shades[shade] += `M${tenth((i % wide) * x)} ${tenth(top + Math.floor(i / wide) * y)}h${tenth(x)}v${tenth(y)}h${tenth(-x)}z`;
  });
  return shades.map((d, shade) => (d ? svg("path", { d, class: shade === SHADES ? "rg-not-finite" : "", style: shade === SHADES ? "" : `fill-opacity: ${tenth(0.1 + 0.9 * shade / (SHADES - 1))}` }) : null)).filter(Boolean);
}

function binsOf(values) {
  const wide = THUMB.wide / values.length;
  const d = values.map((value, i) => (value ? `M${tenth(i * wide)} ${THUMB.high}v${tenth(-THUMB.high * value)}h${tenth(wide - 0.6)}V${THUMB.high}z` : "")).join("");
  return [svg("path", { d: d || `M0 ${THUMB.high}h${THUMB.wide}` })];
}

export const Glances = (Base) => class extends Base {
  buildGlances() {
    this.glances = new Map(); // from the key of a node to [version, kind, letters, wide, norm]
    this.looked = new Map(); // versions that were asked for, by key
  }

  takeGlances(found) {
    for (const [key, told] of Object.entries(found)) this.glances.set(+key, told);
  }

  forgetGlances() {
    this.glances.clear();
    this.looked.clear();
  }

  /** Return what is drawn of a node's array in a state: nothing, if its value was another one. */
  glanceOf(key, state) {
    const told = this.glances.get(key);
    return told && state && told[0] === state.version ? told : null;
  }

  /** Ask soon for the arrays in sight that have other values than those that are drawn. */
  lookAround() {
    this.looking ??= setTimeout(() => {
      this.looking = null;
      if (!this.view || !this.states) return;
      const wanted = [];
      for (const key of this.inSightNow()) {
        const state = this.states.get(key);
        if (!state || state.state !== "clean" || !isArray(state.shape) || this.glanceOf(key, state) || this.looked.get(key) === state.version) continue;
        this.looked.set(key, state.version);
        wanted.push(key);
      }
      if (wanted.length) this.say({ kind: "sight", keys: wanted.slice(0, MOST_ASKED) });
    }, LOOK_LATER);
  }

  /** Return the nodes whose numbers can be seen: those in boxes, and with gradients those of lines. */
  inSightNow() {
    const boxes = this.boxes.filter((drawn) => this.inSight(drawn, true));
    return [...boxes.filter(({ box }) => box.node != null).map(({ box }) => box.node), ...this.flowKeys(boxes)];
  }
};

/** Return whether a shape as text, such as float64[2, 3], is that of an array. */
const isArray = (shape) => /\[\d[^\]]*\]$/.test(shape);
