// First start: commands to copy. The page changes by itself when the first run registers.

import { copyFrom, el, setText } from "../dom.js";

/** @typedef {import("../app.js").App} App */

const WAYS = [
  { title: "A job you are about to start", command: "vramscope run train.py", note: "In front of the script's own arguments; no change to its code" },
  { title: "No GPU at hand", command: "vramscope demo", note: "A small training job, on the GPU if there is one, else on an emulated device" },
];

/** @param {App} app */
export function firstStart(app) {
  const address = el("code", {}, location.host);
  const stays = el("span", {});
  const pillText = el("span", {}, "Waiting for the first run");
  const element = el("section", { class: "first-start", "aria-label": "First start" },
    el("h1", {}, "No run yet. Start one of these; it shows up here by itself."),
    el("p", {}, "Listening on ", address, stays),
    ...WAYS.map((way, i) => {
      const copy = el("button", { class: i === 0 ? "button primary" : "button", type: "button", "aria-label": `Copy: ${way.command}`, click: () => void copyFrom(copy, way.command) }, "Copy");
      return el("div", { class: "way" }, el("h2", {}, way.title), el("pre", {}, way.command), copy, el("p", {}, way.note));
    }),
    el("div", { class: "pill", "data-shape": "ring" }, el("span", { class: "dot" }), pillText));
  return {
    element,
    update() {
      const local = ["127.0.0.1", "localhost", "[::1]"].includes(location.hostname);
      setText(stays, local ? ". Nothing leaves this machine." : ".");
      setText(pillText, app.link.state === "open" ? "Waiting for the first run" : "Reconnecting to the server");
    },
  };
}
