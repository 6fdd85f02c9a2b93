import assert from "node:assert/strict";
import test from "node:test";
import { plainColumns, RESERVED, sampleFieldsOf, STEP } from "../vramscope_frontend/js/fields.js";

test("a further device is asked for under its number, and read under the plain names", () => {
  const asked = sampleFieldsOf(1);
  assert.ok(asked.includes(`${RESERVED}@1`) && asked.includes(STEP) && !asked.includes(RESERVED));
  assert.ok(sampleFieldsOf(null).includes(RESERVED));
  assert.deepEqual(plainColumns({ [`${RESERVED}@1`]: [7], [STEP]: [3] }, 1), { [RESERVED]: [7], [STEP]: [3] });
  // Of another device, not of this one.
  assert.deepEqual(Object.keys(plainColumns({ [`${RESERVED}@12`]: [7] }, 1)), [`${RESERVED}@12`]);
  assert.deepEqual(plainColumns({ [`${RESERVED}@1`]: [7] }, null), { [`${RESERVED}@1`]: [7] });
});
