// Elements of HTML and SVG.

export const SVG = "http://www.w3.org/2000/svg";

export function put(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
export const html = (tag, attributes = {}, ...children) => put(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => put(document.createElementNS(SVG, tag), attributes, children);

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setSvgText(element, text) {
  element.textContent = text;
  return element;
}
