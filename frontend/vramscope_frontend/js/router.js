// Addresses: one per page, and the view of a page in its query, so that a link shows exactly this.

import { framed, unframed } from "./frame.js";

/** @typedef {"runs" | "overview" | "ranks" | "findings" | "map" | "snapshots" | "snapshot" | "oom" | "commands" | "about" | "missing"} PageName */
/** `snapshot`: of the page of one snapshot; of one report of running out of memory its id. @typedef {{page: PageName, run: string | null, snapshot: string | null, view: URLSearchParams}} Place */

/**
 * @param {string} pathname
 * @param {string} search
 * @returns {Place}
 */
export function placeOf(pathname, search) {
  const view = new URLSearchParams(search);
  const parts = pathname.split("/").filter(Boolean);
  const nowhere = { run: null, snapshot: null, view };
  // What is no text at all is the name of nothing.
  if (!parts.every(isText)) return { page: "missing", ...nowhere };
  if (parts.length === 0) return { page: "runs", ...nowhere };
  if (parts[0] !== "runs" || parts.length > 4) return { page: "missing", ...nowhere };
  if (parts.length === 1) return { page: "runs", ...nowhere };
  const run = decodeURIComponent(parts[1]);
  if (parts.length === 4) {
    const snapshot = decodeURIComponent(parts[3]);
    if (parts[2] === "oom") return { page: "oom", run, snapshot, view };
    return parts[2] === "snapshots" ? { page: "snapshot", run, snapshot, view } : { page: "missing", run, snapshot: null, view };
  }
  switch (parts[2]) {
    case undefined:
      return { page: "overview", run, snapshot: null, view };
    case "ranks":
    case "findings":
    case "map":
    case "snapshots":
    case "commands":
    case "about":
      return { page: parts[2], run, snapshot: null, view };
    default:
      return { page: "missing", run, snapshot: null, view };
  }
}

/** @param {string} part of an address */
function isText(part) {
  try {
    decodeURIComponent(part);
    return true;
  } catch (error) {
    if (error instanceof URIError) return false;
    throw error;
  }
}

/**
 * @param {PageName} page
 * @param {string | null} [run]
 * @param {string | null} [snapshot] of the page of one snapshot, or of one report of running out of memory
 */
export function pathOf(page, run = null, snapshot = null) {
  if (page === "runs" || run === null) return "/";
  const base = `/runs/${encodeURIComponent(run)}`;
  if (page === "snapshot") return snapshot === null ? `${base}/snapshots` : `${base}/snapshots/${encodeURIComponent(snapshot)}`;
  if (page === "oom") return snapshot === null ? `${base}/snapshots` : `${base}/oom/${encodeURIComponent(snapshot)}`;
  return page === "overview" ? base : `${base}/${page}`;
}

export class Router {
  /** @param {(place: Place) => void} onPlace */
  constructor(onPlace) {
    this.onPlace = onPlace;
    this.place = placeOf(unframed(location.pathname), location.search);
  }

  start() {
    window.addEventListener("popstate", () => this.arrive());
    document.addEventListener("click", (event) => {
      const link = event.target instanceof Element ? event.target.closest("a[href^='/']") : null;
      // Anything but a plain click belongs to the browser: new tab, download, selection.
      if (!(link instanceof HTMLAnchorElement) || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || link.target || link.hasAttribute("download")) return;
      event.preventDefault();
      this.go(link.getAttribute("href") ?? "/");
    });
    this.arrive();
  }

  arrive() {
    this.place = placeOf(unframed(location.pathname), location.search);
    this.onPlace(this.place);
  }

  /** @param {string} address */
  go(address) {
    if (unframed(location.pathname) !== location.pathname) {
      const within = framed(address);
      if (within === null) return;
      // Nothing is added to the history: "back" belongs to the page around the frame.
      history.replaceState(null, "", within + location.hash);
    } else history.pushState(null, "", address);
    this.arrive();
    window.scrollTo(0, 0);
  }

  /**
   * Note the view in the address without a new entry in the history; null removes.
   * @param {Record<string, string | null>} changes
   */
  note(changes) {
    const { view } = this.place;
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) view.delete(name);
      else view.set(name, value);
    }
    const search = view.toString();
    const address = location.pathname + (search ? `?${search}` : "");
    if (address !== location.pathname + location.search) history.replaceState(null, "", address + location.hash);
  }
}
