// The graph that stands behind an exported page: it repeats what was recorded.
const recorded = JSON.parse(document.getElementById("recorded").textContent);
const listeners = new Set();
const tell = (message) => listeners.forEach((listener) => listener(message));
explorer.render({
  el: document.getElementById("page"),
  model: {
    on: (_, listener) => listeners.add(listener),
    off: (_, listener) => listeners.delete(listener),
    send(message) {
      if (message.kind === "open") [recorded.graph, recorded.views[0], ...recorded.frames].forEach(tell);
      else if (message.kind === "why" && recorded.why[message.key]) tell(recorded.why[message.key]);
      else if (message.kind === "view") {
        const found = recorded.views.find(({ layer, focus }) => layer === message.layer && focus === message.focus);
        tell(found ?? { kind: "problem", text: "This file holds no picture of that part; g.explore() in a notebook has all of them." });
      }
    },
  },
});
