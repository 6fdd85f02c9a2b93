import assert from "node:assert/strict";
import test from "node:test";
import { explorerFromQuery, queryFromExplorer, shifted, withinShown, withinWhole, zoomed } from "../../vramscope_frontend/js/snapshots/explorer-view.js";

test("a view survives its address", () => {
  /** @type {import("../../vramscope_frontend/js/snapshots/explorer-view.js").ExplorerView} */
  const view = { by: "line", range: [100, 900], at: 42, fold: false, drawn: "table", device: 1 };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(queryFromExplorer(view))) if (value !== null) query.set(name, value);
  assert.deepEqual(explorerFromQuery(query), view);
});

test("what the address says wrongly is not taken", () => {
  const view = explorerFromQuery(new URLSearchParams("by=colour&from=9&to=3&at=x&drawn=cake"));
  assert.deepEqual(view, { by: "stack", range: null, at: null, fold: true, drawn: "icicle", device: null });
  assert.deepEqual(queryFromExplorer(view), { by: null, from: null, to: null, at: null, fold: null, drawn: null, device: null });
});

test("zooming stays within the recording and keeps what is under the pointer", () => {
  assert.deepEqual(zoomed([0, 1000], 0.5, 250, [0, 1000], 10), [125, 625]);
  assert.deepEqual(zoomed([400, 600], 10, 500, [0, 1000], 10), [0, 1000]);
  assert.deepEqual(zoomed([500, 520], 0.1, 510, [0, 1000], 10), [505, 515]);
  assert.deepEqual(shifted([900, 1000], 500, [0, 1000]), [900, 1000]);
  assert.deepEqual(shifted([100, 200], -500, [0, 1000]), [0, 100]);
});

test("a cursor and a range that the recording does not show are not taken as they are", () => {
  assert.deepEqual([withinShown(3, [5, 7, 9]), withinShown(8, [5, 7, 9]), withinShown(99, [5, 7, 9]), withinShown(3, [])], [5, 8, 9, 3]);
  assert.deepEqual([withinWhole([5, 10], [100, 200]), withinWhole([50, 150], [100, 200]), withinWhole(null, [100, 200])], [null, [100, 150], null]);
});
