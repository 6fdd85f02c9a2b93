// Pointer gestures over a chart along time: point, drag a range, pan, wheel, back.

/**
 * @typedef {object} Gestures
 * @property {(x: number | null, py: number | null) => void} onPoint
 * @property {(x: number) => void} onPin
 * @property {(range: [number, number]) => void} onZoom a range was dragged
 * @property {boolean} [keepsBrush] the brush stays until the chart takes it away
 * @property {(delta: number) => void} onPan in x units
 * @property {(factor: number, at: number) => void} onWheel
 * @property {() => void} onBack
 */

const LEAST_DRAG_PX = 5;

/**
 * What gestures need of a chart.
 * @typedef {object} PointedChart
 * @property {HTMLElement} surface where the pointer is heard
 * @property {HTMLElement} host
 * @property {HTMLElement} brush
 * @property {{left: number, width: number, top: number, height: number}} geometry
 * @property {(px: number) => number} xAt
 */

/**
 * @param {PointedChart} timeline
 * @param {Gestures} gestures
 * @returns {() => void} detach
 */
export function attachPointer(timeline, gestures) {
  const { surface, host, brush } = timeline;
  /** @type {{px: number, lastPx: number, pan: boolean} | null} */
  let drag = null;
  /** @type {{px: number, py: number} | null} */
  let pointed = null;
  let frame = 0;

  const local = (/** @type {MouseEvent} */ event) => {
    const box = host.getBoundingClientRect();
    return { px: event.clientX - box.left, py: event.clientY - box.top };
  };
  // Many moves may come before one frame is drawn: only the last of them counts.
  const point = (/** @type {{px: number, py: number} | null} */ at) => {
    pointed = at;
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      gestures.onPoint(pointed ? timeline.xAt(pointed.px) : null, pointed?.py ?? null);
    });
  };
  const endDrag = (keep = false) => {
    drag = null;
    brush.hidden = !keep;
  };

  surface.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const { px } = local(event);
    drag = { px, lastPx: px, pan: event.shiftKey };
    surface.setPointerCapture(event.pointerId);
  });
  surface.addEventListener("pointermove", (event) => {
    const at = local(event);
    point(at);
    if (!drag) return;
    if (drag.pan) {
      gestures.onPan(timeline.xAt(drag.lastPx) - timeline.xAt(at.px));
      drag.lastPx = at.px;
      return;
    }
    const { left, width, top, height } = timeline.geometry;
    const from = Math.max(left, Math.min(drag.px, at.px));
    const to = Math.min(left + width, Math.max(drag.px, at.px));
    brush.hidden = to - from < LEAST_DRAG_PX;
    Object.assign(brush.style, { left: `${from}px`, width: `${Math.max(0, to - from)}px`, top: `${top}px`, height: `${height}px` });
  });
  surface.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const { px } = local(event);
    const { px: start, pan } = drag;
    endDrag(gestures.keepsBrush === true && !pan && Math.abs(px - start) >= LEAST_DRAG_PX);
    if (pan) return;
    if (Math.abs(px - start) < LEAST_DRAG_PX) gestures.onPin(timeline.xAt(px));
    else gestures.onZoom([timeline.xAt(Math.min(px, start)), timeline.xAt(Math.max(px, start))]);
  });
  surface.addEventListener("pointercancel", () => endDrag());
  surface.addEventListener("pointerleave", () => point(null));
  surface.addEventListener("dblclick", () => gestures.onBack());
  surface.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { px } = local(event);
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) gestures.onPan(((timeline.xAt(px + 100) - timeline.xAt(px)) * event.deltaX) / 100);
    else gestures.onWheel(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), timeline.xAt(px));
  }, { passive: false });
  return () => cancelAnimationFrame(frame);
}
