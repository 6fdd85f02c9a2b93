// The frame of the dialog of a command: header, body, footer with one button that acts. `Enter` does
// not press that button; `Ctrl+Enter` does.

import { el, fill, setAttribute, setText } from "../dom.js";

/**
 * @typedef {object} FrameHandlers
 * @property {() => void} onPrimary
 * @property {() => void} onClose
 */

export class DialogFrame {
  /**
   * @param {string} title
   * @param {FrameHandlers} handlers
   */
  constructor(title, handlers) {
    this.handlers = handlers;
    this.title = el("h2", { id: "dialog-title" }, title);
    this.state = el("span", { class: "context", role: "status" });
    this.choice = el("span", {});
    this.body = el("div", { class: "body" });
    this.left = el("span", { class: "left" });
    this.cancel = el("button", { class: "button", type: "button", click: () => this.dialog.close() }, "Cancel");
    this.primary = el("button", { class: "button primary", type: "button", disabled: true, title: "Ctrl+Enter", click: () => handlers.onPrimary() });
    this.primary.addEventListener("keydown", (event) => {
      // Who holds Enter down, or means another field, must not act on the job: space and Ctrl+Enter do.
      if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) event.preventDefault();
    });
    this.dialog = el("dialog", { class: "command-dialog", "aria-labelledby": "dialog-title", keydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event), close: () => handlers.onClose() },
      el("header", {}, this.title, this.state, el("div", { class: "controls" }, this.choice, el("kbd", {}, "Esc"))), this.body, el("footer", {}, this.left, this.cancel, this.primary));
  }

  open() {
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.cancel.focus();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    // Shortcuts of the page rest while a dialog is open.
    event.stopPropagation();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (!this.primary.disabled && !this.primary.hidden) this.handlers.onPrimary();
    }
  }

  /**
   * What the button says, and whether it can be pressed.
   * @param {string} label
   * @param {string | null} [whyNot] null when it can
   * @param {boolean} [isDangerous]
   */
  offer(label, whyNot = null, isDangerous = false) {
    setText(this.primary, label);
    this.primary.disabled = whyNot !== null;
    this.primary.classList.toggle("danger", isDangerous);
    setAttribute(this.primary, "title", whyNot || "Ctrl+Enter");
  }

  /** @param {string} text what is being waited for */
  wait(text) {
    this.offer(text, "");
  }

  /**
   * @param {...import("../dom.js").Child} children
   */
  show(...children) {
    fill(this.body, ...children);
  }
}
