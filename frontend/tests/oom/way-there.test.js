import assert from "node:assert/strict";
import test from "node:test";
import { wayThere } from "../../vramscope_frontend/js/oom/way-there.js";
import { madeReport } from "./made-report.js";

test("peaks of steps, flushes in the step in which they were, those of the last one too", () => {
  const way = wayThere(madeReport());
  assert.deepEqual([way?.bySteps, way?.x, way?.allocated, way?.end, way?.highest], [true, [28, 29, 30], [100, 200, 300], 31, 500]);
  assert.deepEqual(way?.retries, { x: [29, 31], y: [2, 1] });
});

test("without steps the last minute is the way, in seconds before the end", () => {
  const way = wayThere(madeReport({ steps: { time_ns: [], number: [], columns: {} }, samples: { time_ns: [30e9, 59e9], number: null, columns: { "allocated_bytes.all.current": [null, 7] } } }));
  assert.deepEqual([way?.bySteps, way?.x, way?.end], [false, [-30, -1], 0]);
  assert.ok(way && Number.isNaN(way.allocated[0]) && Number.isNaN(way.reserved[1]));
  assert.equal(wayThere(madeReport({ steps: undefined, samples: undefined })), null);
});
