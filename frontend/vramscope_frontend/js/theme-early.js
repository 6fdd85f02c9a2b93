// Classic script, run before the first paint: a module would come after it and flash the other theme.
(() => {
  try {
    const stored = localStorage.getItem("vramscope.theme");
    if (stored === "dark" || stored === "light") document.documentElement.dataset.theme = stored;
  } catch {
    // Storage may be forbidden; then the system's preference decides, by the style sheet alone.
  }
})();
