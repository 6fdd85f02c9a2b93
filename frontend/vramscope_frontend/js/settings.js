// What the reader chose, kept in this browser only.

/** @param {string} name */
function read(name) {
  try {
    return localStorage.getItem(`vramscope.${name}`);
  } catch {
    // Storage may be forbidden: the choice then lasts as long as the page.
    return null;
  }
}

/**
 * @param {string} name
 * @param {string} value
 */
function write(name, value) {
  try {
    localStorage.setItem(`vramscope.${name}`, value);
  } catch {
    // As above.
  }
}

/** @returns {"dark" | "light"} */
export function currentTheme() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "dark" || chosen === "light") return chosen;
  return matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
}

/** @param {"dark" | "light"} theme */
export function chooseTheme(theme) {
  document.documentElement.dataset.theme = theme;
  write("theme", theme);
  window.dispatchEvent(new Event("vramscope:theme"));
}

/**
 * Tell when colours change, by choice or by the system.
 * @param {() => void} listener
 * @returns {() => void}
 */
export function onThemeChange(listener) {
  const system = matchMedia("(prefers-color-scheme: light)");
  window.addEventListener("vramscope:theme", listener);
  system.addEventListener("change", listener);
  return () => {
    window.removeEventListener("vramscope:theme", listener);
    system.removeEventListener("change", listener);
  };
}

export function shortcutsAreOn() {
  return read("shortcuts") !== "off";
}

/** @param {boolean} on */
export function setShortcuts(on) {
  write("shortcuts", on ? "on" : "off");
}

export function reducedMotion() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
