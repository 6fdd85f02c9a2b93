// Colours and the common layout of charts, read from the style sheet: one source for both.

/**
 * @typedef {object} Tokens
 * @property {string} bg
 * @property {string} panel
 * @property {string} raise
 * @property {string} line
 * @property {string} line2
 * @property {string} ink
 * @property {string} ink2
 * @property {string} ink3
 * @property {string} accent
 * @property {string} crit
 * @property {string} warn
 * @property {string} critFill of data
 * @property {string} warnFill
 * @property {string} font
 * @property {Record<import("../composition.js").LayerId, string>} category
 * @property {string[]} scale head-room: under 2.5 %, to 5 %, 5, 10, 16, 20 % and more
 */

/** @returns {Tokens} */
export function readTokens() {
  const style = getComputedStyle(document.documentElement);
  const token = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  return {
    bg: token("bg"),
    panel: token("panel"),
    raise: token("raise"),
    line: token("line"),
    line2: token("line2"),
    ink: token("ink"),
    ink2: token("ink2"),
    ink3: token("ink3"),
    accent: token("accent"),
    crit: token("crit"),
    warn: token("warn"),
    critFill: token("crit-fill"),
    warnFill: token("warn-fill"),
    font: token("sans"),
    category: {
      tensors: token("cat-tensors"),
      held: token("cat-held"),
      within: token("cat-within"),
      parameters: token("cat-parameters"),
      gradients: token("cat-gradients"),
      optimizer: token("cat-optimizer"),
      buffers: token("cat-buffers"),
      activations: token("cat-activations"),
      unsplit: token("cat-unsplit"),
      grown: token("crit-fill"),
      pending: token("cat-pending"),
      stranded: token("cat-stranded"),
      private: token("cat-stranded"),
      inside: token("cat-cached"),
      cached: token("cat-cached"),
      context: token("cat-context"),
      driver: token("cat-driver"),
      unknown: token("cat-unknown"),
      other: token("cat-other"),
    },
    scale: [token("crit-fill"), token("warn-fill"), token("scale-5"), token("scale-10"), token("scale-16"), token("scale-20")],
  };
}

/**
 * Colour of the hatch of a category.
 * @param {Tokens} tokens
 * @param {import("../composition.js").LayerId} id
 */
export function hatchColour(tokens, id) {
  // The cross of the unknown: in the hatch of stranded it read as if all of it were lost.
  if (id === "inside" || id === "unknown") return tokens.ink3;
  if (id === "unsplit") return tokens.panel;
  return tokens.category[id];
}

/**
 * What a layer is accused of, in the colour of its severity: nothing else on the page has it.
 * @typedef {{layer: import("../composition.js").LayerId, severity: import("../glyphs.js").Severity}} Accused
 */

/**
 * The colour of a severity, as a fill of data.
 * @param {Tokens} tokens
 * @param {import("../glyphs.js").Severity} severity
 */
export function severityFill(tokens, severity) {
  return severity === "crit" ? tokens.critFill : severity === "warn" ? tokens.warnFill : tokens.ink3;
}

/**
 * Tokens in which the accused layer has the colour of its severity.
 * @param {Tokens} tokens
 * @param {Accused | null} accused
 * @returns {Tokens}
 */
export function accusing(tokens, accused) {
  return accused ? { ...tokens, category: { ...tokens.category, [accused.layer]: severityFill(tokens, accused.severity) } } : tokens;
}

/** Categories whose hatch lies on their own colour: what is crossed out has a colour, but no name. */
export const CROSSED = /** @type {ReadonlySet<import("../composition.js").LayerId>} */ (new Set(/** @type {const} */ (["inside", "unknown", "unsplit"])));

/**
 * `#rrggbb` with an opacity.
 * @param {string} colour
 * @param {number} opacity
 */
export function faded(colour, opacity) {
  const value = Number.parseInt(colour.slice(1), 16);
  return `rgba(${value >> 16},${(value >> 8) & 255},${value & 255},${opacity})`;
}

/**
 * What every figure shares. All pointer and hover work is ours, so figures are static.
 * @param {Tokens} tokens
 * @returns {Partial<Plotly.Layout>}
 */
export function baseLayout(tokens) {
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: tokens.font, size: 12, color: tokens.ink2 },
    showlegend: false,
    hovermode: false,
    dragmode: false,
    bargap: 0.2,
  };
}

/** @type {Partial<Plotly.Config>} */
export const STATIC = { displayModeBar: false, staticPlot: true, responsive: false, doubleClick: false };
