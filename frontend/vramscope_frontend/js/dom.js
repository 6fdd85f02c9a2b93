// Element helpers. Text is always set as text: no data ever reaches the HTML parser.

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | EventListener | ((event: any) => void)>} Attributes */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {Element} element
 * @param {Attributes} attributes
 */
function applyAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, /** @type {EventListener} */ (value));
    else setAttribute(element, name, value);
  }
}

/**
 * Create an element; functions among the attributes are listeners by event name.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  applyAttributes(element, attributes);
  append(element, children);
  return element;
}

/**
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  applyAttributes(element, attributes);
  append(element, children);
  return element;
}

/**
 * @param {Element} parent
 * @param {Child[]} children
 */
function append(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

/**
 * Replace what an element holds.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/**
 * Make an element hold these children, and keep the nodes that it has: what is pressed, in focus or
 * selected stays so. A kept node keeps its listeners; those that mean something else say so by `data-key`.
 * @param {Element} element
 * @param {...Child} children
 */
export function refill(element, ...children) {
  const wanted = document.createElement("div");
  append(wanted, children);
  matchChildren(element, wanted);
}

/**
 * @param {Element} element
 * @param {Element} wanted
 */
function matchChildren(element, wanted) {
  const next = [...wanted.childNodes];
  const old = [...element.childNodes];
  for (const extra of old.slice(next.length)) extra.remove();
  next.forEach((node, i) => {
    const had = old[i];
    if (!had) element.append(node);
    else if (!isSame(had, node)) had.replaceWith(node);
    else if (had instanceof Element && node instanceof Element) {
      for (const name of had.getAttributeNames()) if (!node.hasAttribute(name)) had.removeAttribute(name);
      for (const name of node.getAttributeNames()) setAttribute(had, name, node.getAttribute(name));
      matchChildren(had, node);
    } else if (had.nodeValue !== node.nodeValue) had.nodeValue = node.nodeValue;
  });
}

/**
 * @param {Node} had
 * @param {Node} node
 */
function isSame(had, node) {
  if (had instanceof HTMLElement && node instanceof HTMLElement) return had.tagName === node.tagName && had.dataset.key === node.dataset.key;
  return had.nodeType === node.nodeType && had.nodeName === node.nodeName;
}

/**
 * Set text only when it differs: an untouched node keeps selection, focus and layout.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * `null`, `undefined` and `false` remove it, `true` sets it empty.
 * @param {Element} element
 * @param {string} name
 * @param {string | number | boolean | null | undefined} value
 */
export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/**
 * The element that index.html promises.
 * @param {string} id
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`expected an element with the id ${id} in index.html`);
  return element;
}

/**
 * Rebuild only when what is shown has changed, judged by a key made from it.
 * @param {HTMLElement} element
 * @param {string} key
 * @param {() => Child[]} build
 */
export function fillWhenChanged(element, key, build) {
  if (element.dataset.key === key) return false;
  element.dataset.key = key;
  fill(element, ...build());
  return true;
}

/**
 * Copy text and say so on the button that asked for it.
 * @param {HTMLElement} button
 * @param {string} text
 */
export async function copyFrom(button, text) {
  const label = button.textContent ?? "Copy";
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    // No clipboard without a secure context or permission: select nothing, say what to do instead.
    button.textContent = "Not allowed";
  }
  setTimeout(() => {
    button.textContent = label;
  }, 1500);
}
