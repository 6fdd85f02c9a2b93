// What each key does on the page that is open.

import { zoomAround } from "./memory-view.js";
import { pathOf } from "./router.js";
import { Overview } from "./views/overview.js";
import { RunPage } from "./views/run-page.js";
import { Runs } from "./views/runs.js";

/** @typedef {import("./app.js").App} App */

/**
 * @param {App} app
 * @param {RunPage | Runs | null} page
 * @param {string} letter
 */
export function goTo(app, page, letter) {
  const run = page instanceof RunPage ? page.id : null;
  const many = page instanceof RunPage && (page.session.run?.world_size ?? 1) > 1;
  /** @type {Record<string, import("./router.js").PageName>} */
  const pages = { u: "runs", o: "overview", f: "findings", m: "map", s: "snapshots", c: "commands", a: "about", ...(many ? { r: "ranks" } : {}) };
  const name = pages[letter];
  if (!name || (run === null && name !== "runs")) return false;
  app.router.go(pathOf(name, run));
  return true;
}

/**
 * @param {Runs} page
 * @param {string} key
 */
export function runsKey(page, key) {
  if (key === "j" || key === "ArrowDown") page.move(1);
  else if (key === "k" || key === "ArrowUp") page.move(-1);
  else if (key === "Enter") page.openSelected();
  else return false;
  return true;
}

/**
 * @param {RunPage} page
 * @param {string} key
 */
export function runKey(page, key) {
  if (key === "e" || key === "s") {
    if ((key === "e" ? page.actions.free : page.actions.snapshot).disabled) return false;
    page.openCommand(key === "e" ? "empty_cache" : "snapshot");
    return true;
  }
  if (page.view instanceof Overview && (key === "j" || key === "k")) return page.view.findings.move(key === "j" ? 1 : -1);
  return page.view instanceof Overview ? chartKey(page.view.memory, key) : (page.view?.onKey?.(key) ?? false);
}

/**
 * @param {import("./views/memory-panel.js").MemoryPanel} memory
 * @param {string} key
 */
function chartKey(memory, key) {
  const { view } = memory;
  const zoom = (/** @type {number} */ factor) => {
    const shown = memory.range;
    memory.setView(zoomAround(view, shown, factor, view.pinned ?? (shown[0] + shown[1]) / 2, memory.bounds));
  };
  switch (key) {
    case "f":
      memory.controls.followButton.click();
      return true;
    case "ArrowLeft":
    case "[":
      memory.moveCursor(-1);
      return true;
    case "ArrowRight":
    case "]":
      memory.moveCursor(1);
      return true;
    case "Shift+ArrowLeft":
      memory.moveCursor(-10);
      return true;
    case "Shift+ArrowRight":
      memory.moveCursor(10);
      return true;
    case "+":
    case "=":
      zoom(0.5);
      return true;
    case "-":
      zoom(2);
      return true;
    case "0":
      memory.showWholeRun();
      return true;
    case "p":
      memory.goToPeak();
      return true;
    case "y":
      if (view.rank === null) return false;
      memory.toggleScale();
      return true;
    case "l":
      if (view.rank === null) return false;
      memory.setView({ ...view, drawn: view.drawn === "lines" ? "composition" : "lines" });
      return true;
    case "Backspace":
      memory.goBack();
      return true;
    case "Escape":
      if (memory.unmark()) return true;
      if (view.pinned === null && !view.range) return false;
      if (view.pinned === null) memory.goBack();
      else memory.setView({ ...view, pinned: null });
      return true;
    default:
      return false;
  }
}
