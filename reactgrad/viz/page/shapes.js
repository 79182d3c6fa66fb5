// The shapes of boxes: each look has one of its own, so that it is known in grey, too.

export const WIDTH = 156; // of a box, as in _layout.py
export const HEIGHT = 60;

export function outline(look, w, h) {
  const x = w / 2, y = h / 2, c = 11;
  const round = (r) => `M${-x + r} ${-y}H${x - r}A${r} ${r} 0 0 1 ${x} ${-y + r}V${y - r}A${r} ${r} 0 0 1 ${x - r} ${y}` +
    `H${-x + r}A${r} ${r} 0 0 1 ${-x} ${y - r}V${-y + r}A${r} ${r} 0 0 1 ${-x + r} ${-y}Z`;
  const octagon = (d) => `M${-x + c + d} ${-y + d}H${x - c - d}L${x - d} ${-y + c + d}V${y - c - d}L${x - c - d} ${y - d}` +
    `H${-x + c + d}L${-x + d} ${y - c - d}V${-y + c + d}Z`;
  switch (look) {
    case "stale": return `M${-x + c} ${-y}H${x - c}L${x} 0L${x - c} ${y}H${-x + c}L${-x} 0Z`;
    case "ran": return round(y);
    case "cut_off": return octagon(0);
    case "error": return octagon(0) + octagon(4);
    case "running": return `M${-x} ${-y}H${x - c}L${x} 0L${x - c} ${y}H${-x}L${-x + c} 0Z`;
    case "folded": return `M${-x} ${-y}H${-x + 46}L${-x + 50} ${-y + 4}H${x}V${y}H${-x}Z`;
    default: return round(6);
  }
}
