// Words, numbers and any text, as the page shows them.

export const WORDS = {
  clean: "clean", stale: "stale", running: "running", ran: "ran", cut_off: "cut off",
  error: "error", unset: "unset", gone: "not there", folded: "scope",
};
export const ORDER = ["gone", "clean", "unset", "cut_off", "ran", "stale", "running", "error"];
export const GLYPHS = { input: "▷ ", param: "◆ ", const: "■ " };
export const LAYERS = { values: "values", gradients: "adjoints", all: "values and adjoints" };

/** Return any text on one line, without characters that control how others are shown. */
export function plain(text, most = 200) {
  const line = String(text).slice(0, 4 * most).replace(/\s+/gu, " ").replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/gu, "\uFFFD");
  return line.length > most ? line.slice(0, most - 1) + "…" : line;
}

/** Do the same line by line. */
export function plainLines(text) {
  return String(text).split("\n").map((line) => (line.match(/^ */)[0] + plain(line, 1000))).join("\n");
}

// Once: making one takes longer than a redraw.
const NUMBERS = new Intl.NumberFormat("en-US");
const [JOINED, GROUPED] = [false, true].map((useGrouping) => new Intl.NumberFormat("en-US", { maximumFractionDigits: 9, useGrouping }));
export const count = (n) => NUMBERS.format(n);
export const some = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

/** Return a number as it is read at a glance, and other text cut short. */
export function short(text) {
  const number = Number(text);
  if (text && Number.isFinite(number)) {
    const size = Math.abs(number), six = +number.toPrecision(6);
    if (size >= 1e9) return six.toExponential();
    return size && size < 1e-4 ? String(six) : (size >= 1e4 ? GROUPED : JOINED).format(six);
  }
  return plain(text ?? "", 24);
}

/** Say what nodes take, as far as that is known. */
export function about(n, { cost, unknown }) {
  return n === unknown ? "" : `, about ${time(cost)}${unknown ? ` and ${count(unknown)} never measured` : ""}`;
}

export function time(ms) {
  if (ms >= 1000) return `${(ms / 1000).toPrecision(3)} s`;
  return ms >= 0.1 ? `${ms.toPrecision(3)} ms` : `${(ms * 1000).toPrecision(3)} µs`;
}

const ruler = document.createElement("canvas").getContext("2d");
/** Return how wide a text is, in pixels. */
export function fullWidth(text, font) {
  ruler.font = font;
  return ruler.measureText(text).width;
}

/** Return a name, cut in its middle to a width in pixels: names of many things differ at their ends. */
export function fittedName(text, font, width) {
  for (let most = text.length; most > 8; most -= 1) {
    const shown = most === text.length ? text : `${text.slice(0, Math.ceil(most / 3))}…${text.slice(-Math.floor(2 * most / 3))}`;
    if (fullWidth(shown, font) <= width) return shown;
  }
  return fitted(text, font, width);
}

/** Return the text, cut to a width in pixels. */
export function fitted(text, font, width) {
  if (fullWidth(text, font) <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (fullWidth(text.slice(0, middle) + "…", font) <= width) low = middle;
    else high = middle - 1;
  }
  return text.slice(0, low) + "…";
}
