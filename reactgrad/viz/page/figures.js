// Arrays as figures: a line, an image, a histogram, and a table with pages.

import { html, svg } from "./elements.js";
import { count, fullWidth, plain, short } from "./text.js";

const WIDE = 286, HIGH = 54, ROWS = 20; // rows of a table, as in _figures.py

/** Return the figures of an array. */
export function figuresOf({ shape, low, high, bad, bins, line, image }) {
  const parts = [];
  if (line && line.length > 1) parts.push(sparkline(line, low, high));
  if (image?.length && image[0].length) parts.push(picture(image, low, high));
  if (bins.length) parts.push(histogram(bins));
  const said = `${shape.map(count).join(" × ")}: from ${short(String(low))} to ${short(String(high))}${bad ? `, ${count(bad)} not finite` : ""}`;
  return html("figure", { class: "rg-figure" }, ...parts, html("figcaption", {}, said));
}

function sparkline(values, low, high) {
  const x = (i) => (i * WIDE / (values.length - 1)).toFixed(1), y = (value) => (high > low ? 2 + (HIGH - 4) * (high - value) / (high - low) : HIGH / 2).toFixed(1);
  let path = "", pen = "M";
  values.forEach((value, i) => {
    if (value == null) pen = "M";
    else {
      path += `${pen}${x(i)} ${y(value)}`;
      pen = "L";
    }
  });
  return svg("svg", { class: "rg-spark", width: WIDE, height: HIGH, role: "img", "aria-label": `${count(values.length)} values as a line` }, svg("path", { d: path }));
}

function histogram(bins) {
  const most = Math.max(...bins), wide = WIDE / bins.length;
  return svg("svg", { class: "rg-histogram", width: WIDE, height: HIGH, role: "img", "aria-label": "how often values of each size occur" },
    ...bins.map((n, i) => svg("rect", { x: i * wide, y: HIGH - HIGH * n / most, width: wide - 1, height: HIGH * n / most })));
}

/** Draw numbers from dark to light, and colours as they are. */
function picture(rows, low, high) {
  const canvas = html("canvas", { class: "rg-image", width: rows[0].length, height: rows.length, role: "img", "aria-label": `${count(rows.length)} × ${count(rows[0].length)} values as an image` });
  const pen = canvas.getContext("2d"), data = pen.createImageData(rows[0].length, rows.length);
  rows.flat().forEach((value, i) => {
    const share = high > low ? (value - low) / (high - low) : 0.5;
    const colour = Array.isArray(value) ? value : value == null ? [160, 0, 160] : [40 + 215 * share, 40 + 150 * share ** 1.5, 90 + 40 * (1 - share)];
    data.data.set([...colour, 255], 4 * i);
  });
  pen.putImageData(data, 0, 0);
  canvas.style.width = `${Math.min(WIDE, Math.max(96, 8 * rows[0].length))}px`;
  return canvas;
}

const CELL = "12px system-ui, sans-serif", BESIDE = 12; // of a cell, as in explorer.css: its font, and what is left and right of it

/** Return how many columns of a page fit side by side: none is cut off. */
function columnsThatFit(start, rows, wide) {
  const width = (text) => fullWidth(text, CELL) + BESIDE;
  let room = wide - Math.max(...rows.map((_, i) => width(count(start + i))));
  const columns = rows[0].map((_, j) => Math.max(...rows.map((row) => width(row[j]))));
  const fit = columns.findIndex((one) => (room -= one) < 0);
  return Math.max(1, fit < 0 ? columns.length : fit);
}

const SOME = 3; // columns that are seen side by side, if need be with six digits each

/** Return a page of a table that is so many pixels wide at most, with buttons for the pages around it. */
export function tableOf({ start, left, total, wide, rows }, room, turn) {
  const whole = rows.map((row) => row.map((text) => plain(text, 24))), fitting = (texts) => texts[0]?.length ? columnsThatFit(start, texts, room) : 0;
  const texts = fitting(whole) < Math.min(SOME, wide - left) ? whole.map((row) => row.map(short)) : whole, fit = fitting(texts);
  const step = (to, most, ask, text, label) => html("button", { type: "button", "aria-label": label, disabled: to < 0 || to >= most, onclick: () => ask(to) }, text);
  const paged = (what, from, shown, size, most, ask, [back, on]) => html("p", {},
    step(from > 0 ? Math.max(0, from - size) : -1, most, ask, back, `former ${what}s`),
    shown > 1 ? ` ${what}s ${count(from)} to ${count(from + shown - 1)} of ${count(most)} ` : ` ${what} ${count(from)} of ${count(most)} `,
    step(from + shown, most, ask, on, `next ${what}s`));
  return html("div", { class: "rg-table" }, html("table", {}, ...texts.map((row, i) => html("tr", {}, html("th", { scope: "row" }, count(start + i)),
    ...row.slice(0, fit).map((text, j) => html("td", { dir: "auto", title: text === whole[i][j] ? null : whole[i][j] }, text))))),
  paged("row", start, rows.length, ROWS, total, (to) => turn(to, left), ["▲", "▼"]),
  ...(wide > fit ? [paged("column", left, fit, fit, wide, (to) => turn(start, to), ["◀", "▶"])] : []));
}
