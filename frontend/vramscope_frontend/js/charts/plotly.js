// Plotly comes from our own server and after the first paint: it takes a second to run.

/** @type {Promise<void> | null} */
let loading = null;

/** @returns {Promise<void>} */
export function loadPlotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "/vendor/plotly.min.js";
    script.addEventListener("load", () => resolve());
    script.addEventListener("error", () => {
      loading = null;
      reject(new Error("plotly.min.js could not be loaded from the server."));
    });
    document.head.append(script);
  });
  return loading;
}
