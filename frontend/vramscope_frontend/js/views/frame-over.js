// What a frame shows when its token is good no more.

import { el } from "../dom.js";

export function frameOver() {
  return el("section", { class: "login", "aria-label": "Ended" },
    el("h1", {}, "This view has ended."),
    el("p", {}, "The address of a view inside another page is good for one run and for a few hours. In a notebook, run the cell again to see what runs now."));
}
