// Plotly comes from our own server and after the first paint: it takes a second to run.

/**
 * The bundle adds the style sheet of its maps, which are not used here and which the page's content
 * security policy would refuse with an error in the console, unless something has this id already.
 */
const MAP_STYLE_ID = "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53";

/** @type {Promise<void> | null} */
let loading = null;

/** @returns {Promise<void>} */
export function loadPlotly() {
  loading ??= new Promise((resolve, reject) => {
    const map_style = document.createElement("meta");
    map_style.id = MAP_STYLE_ID;
    document.head.append(map_style);
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
