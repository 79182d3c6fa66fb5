// Arrays as figures: a line, an image, a histogram, and a table with pages.

import { html, svg } from "./elements.js";
import { count, plain, short } from "./text.js";

const WIDE = 286, HIGH = 54;

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

/** Return a page of a table, with buttons for the pages beside it. */
export function tableOf({ start, total, wide, rows }, turn) {
  const step = (to, text, label) => html("button", { type: "button", "aria-label": label, disabled: to < 0 || to >= total, onclick: () => turn(to) }, text);
  return html("div", { class: "rg-table" }, html("table", {}, ...rows.map((row, i) => html("tr", {}, html("th", { scope: "row" }, count(start + i)),
    ...row.map((text) => html("td", { dir: "auto" }, plain(text, 24))), ...(wide > row.length ? [html("td", {}, "…")] : [])))),
  html("p", {}, step(start - rows.length < 0 && start > 0 ? 0 : start - 20, "◀", "former rows"), ` rows ${count(start)} to ${count(start + rows.length - 1)} of ${count(total)} `, step(start + 20, "▶", "next rows")));
}
