// The graph that stands behind an exported page: it repeats what was recorded.
const recorded = await unpacked(document.getElementById("recorded"));

/** Return what a page holds: as it is written there, or, where that would be long, compressed. */
async function unpacked({ type, textContent }) {
  if (type === "application/json") return JSON.parse(textContent);
  const bytes = Uint8Array.from(atob(textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const place = document.getElementById("page");
place.replaceChildren(); // the picture that stands there without scripts
const listeners = new Set();
const tell = (message) => listeners.forEach((listener) => listener(message));
explorer.render({
  el: place,
  model: {
    on: (_, listener) => listeners.add(listener),
    off: (_, listener) => listeners.delete(listener),
    send(message) {
      if (message.kind === "open") [recorded.graph, recorded.views[0], recorded.glances, ...recorded.frames, { kind: "begin" }].forEach(tell);
      else if (message.kind === "flow") tell(recorded.flow);
      else if (message.kind === "why" && recorded.why[message.key]) tell(recorded.why[message.key]);
      else if (message.kind === "view") {
        const found = recorded.views.find(({ layer, focus }) => layer === message.layer && focus === message.focus);
        tell(found ?? { kind: "arrange", layer: message.layer, focus: message.focus });
      }
    },
  },
});
