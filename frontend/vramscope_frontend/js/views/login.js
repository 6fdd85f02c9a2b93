// The server does not know this browser: ask for a token.

import { api } from "../api.js";
import { el } from "../dom.js";

/** @param {() => void} onDone */
export function loginPage(onDone) {
  const token = el("input", { type: "password", autocomplete: "current-password", autofocus: true, "aria-label": "Token", placeholder: "Token" });
  const problem = el("p", { class: "crit", role: "alert" });
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    problem.textContent = "";
    try {
      await api.login(token.value.trim());
      onDone();
    } catch (error) {
      problem.textContent = /** @type {Error} */ (error).message;
      token.select();
    }
  };
  return el("section", { class: "login", "aria-label": "Sign in" },
    el("h1", {}, "This server asks for a token."),
    el("p", {}, "It printed an address with a token when it started; opening that address once is enough. Or paste the token here."),
    el("form", { submit }, token, el("button", { class: "button primary", type: "submit" }, "Open")), problem);
}
