// The server that stands behind a page: a socket carries messages, and is opened again when it breaks.
const listeners = new Set();
const tell = (message) => listeners.forEach((listener) => listener(message));
const address = `ws://${location.host}/socket${location.search}`;
let socket, waits = 250, opened = null;
function connect() {
  socket = new WebSocket(address);
  socket.onopen = () => {
    waits = 250;
    if (opened) socket.send(opened);
  };
  socket.onmessage = ({ data }) => tell(JSON.parse(data));
  socket.onclose = () => {
    tell({ kind: "busy", busy: false });
    tell({ kind: "problem", text: "The server does not answer. This page goes on when it does; if it was started anew, open the address that it printed." });
    setTimeout(connect, waits);
    waits = Math.min(2 * waits, 5000);
  };
}
connect();
explorer.render({
  el: document.getElementById("page"),
  model: {
    on: (_, listener) => listeners.add(listener),
    off: (_, listener) => listeners.delete(listener),
    send(message) {
      const text = JSON.stringify(message);
      if (message.kind === "open") opened = text; // sent whenever the socket opens
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
  },
});
