// Start of the page: connection, rights, routes.

import { api, ApiError, useToken } from "./api.js";
import { ServerClock } from "./clock.js";
import { Connection } from "./connection.js";
import { byId, el, fill } from "./dom.js";
import { frameOf, isOver, protocolsOf, unframed } from "./frame.js";
import { stretchesOf, xOfNumber } from "./numbering.js";
import { goTo, runKey, runsKey } from "./page-keys.js";
import { pathOf, Router } from "./router.js";
import { onThemeChange } from "./settings.js";
import { listenForShortcuts, openSheet } from "./shortcuts.js";
import { Socket } from "./socket.js";
import { frameOver } from "./views/frame-over.js";
import { loginPage } from "./views/login.js";
import { Overview } from "./views/overview.js";
import { RunPage } from "./views/run-page.js";
import { Runs } from "./views/runs.js";
import { Shell } from "./views/shell.js";

/** @typedef {import("./app.js").App} App */

const frame = frameOf(location.pathname, location.hash);
if (frame) {
  document.documentElement.dataset.frame = "";
  useToken(frame.token);
}
const clock = new ServerClock();
/** @type {RunPage | Runs | null} */
let page = null;

const changed = () => {
  if (page instanceof RunPage) page.changed();
  if (page instanceof Runs) page.render();
};

const scheme = location.protocol === "https:" ? "wss:" : "ws:";
const connection = new Connection(`${scheme}//${location.host}/ws/live`, {
  onLink: (link) => {
    app.link = link;
    if (frame && link.state === "refused") endFrame();
    else changed();
  },
  onHello: (hello) => {
    clock.set(hello.server_time_ns);
    app.scopes = hello.scopes;
    changed();
  },
}, (url, handlers) => new Socket(url, handlers, frame ? protocolsOf(frame) : []));
const router = new Router((place) => open(place));
const shell = new Shell({ onSearch: search, onHelp: openSheet, onRetry: () => connection.retryNow() });

/** @type {App} */
const app = {
  connection,
  clock,
  router,
  shell,
  link: connection.socket.link,
  scopes: [],
  session: null,
};

/** @param {import("./router.js").Place} place */
function open(place) {
  if (page instanceof RunPage && place.run === page.id && place.page !== "runs" && place.page !== "missing") {
    page.open(place.page, place.snapshot);
    return;
  }
  page?.close();
  page = null;
  const root = byId("page");
  if (place.page === "runs") page = new Runs(app);
  else if (place.run !== null && place.page !== "missing") page = new RunPage(app, place.run);
  else {
    shell.showPath(null);
    shell.showPill(null);
    fill(root, el("section", { class: "login" }, el("h1", {}, "There is no page at this address."), el("p", {}, el("a", { href: "/" }, "To the list of runs"))));
    return;
  }
  fill(root, page.element);
  if (page instanceof RunPage) page.open(place.page, place.snapshot);
}

/** @param {string} text */
function search(text) {
  const step = Number(text.replaceAll(",", ""));
  if (page instanceof RunPage && Number.isInteger(step) && page.view instanceof Overview) {
    const { memory } = page.view;
    const steps = page.session.rankData?.steps.whole();
    const x = steps ? xOfNumber(stretchesOf(steps), step, steps.x.at(-1) ?? step) : step;
    memory.setView({ ...memory.view, xKind: "step", range: [Math.max(0, x - 50), x + 50], before: [...memory.view.before, memory.view.range], pinned: x });
    return;
  }
  router.go(`${pathOf("runs")}?q=${encodeURIComponent(text)}`);
}

/** @param {string} key */
function onKey(key) {
  if (key === "?") openSheet();
  else if (key === "/") (page instanceof Runs ? page.query : shell.search).focus();
  else if (key === "t") shell.toggleTheme();
  else if (key === "c") void navigator.clipboard?.writeText(pageAddress()).catch(() => undefined);
  else if (page instanceof Runs) return runsKey(page, key);
  else if (page instanceof RunPage) return runKey(page, key);
  else return false;
  return true;
}

/** Of what is shown, to pass on: never with the token of a frame. */
function pageAddress() {
  return location.origin + unframed(location.pathname) + location.search;
}

function endFrame() {
  page?.close();
  page = null;
  shell.showPath(null);
  shell.showPill(null);
  fill(byId("page"), frameOver());
}

async function start() {
  if (frame && isOver(frame, Date.now())) {
    endFrame();
    return;
  }
  try {
    app.session = await api.session();
    app.scopes = app.session.scopes;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
      if (frame) {
        endFrame();
        return;
      }
      fill(byId("page"), loginPage(() => location.reload()));
      shell.showPath(null);
      return;
    }
    // Without the session the page still works: rights come with the live feed.
    console.warn("session", error);
  }
  connection.start();
  router.start();
  listenForShortcuts({ onKey, onGo: (letter) => goTo(app, page, letter) });
  onThemeChange(() => {
    if (page instanceof RunPage) page.themeChanged();
    changed();
  });
}

void start();
