import assert from "node:assert/strict";
import test from "node:test";
import { CATALOGUE } from "../../vramscope_frontend/js/commands/catalogue.js";
import { problemOf, valueOf } from "../../vramscope_frontend/js/commands/param-form.js";

/** @type {import("../../vramscope_frontend/js/commands/catalogue.js").ParamField} */
const steps = { key: "steps", label: "Steps", kind: "number", value: 3, min: 1, max: 50 };

test("a number is sent as one, and empty as none", () => {
  assert.equal(valueOf(steps, "12"), 12);
  assert.equal(valueOf(steps, " "), null);
  assert.equal(valueOf({ ...steps, kind: "flag" }, true), true);
  assert.equal(valueOf({ ...steps, kind: "choice" }, "alloc"), "alloc");
});

test("what is wrong with a number is said with its bounds", () => {
  assert.equal(problemOf(steps, "50"), null);
  for (const wrong of ["0", "51", "1.5", "x"]) assert.match(problemOf(steps, wrong) ?? "", /^Steps: a whole number from 1 to 50\.$/);
  assert.match(problemOf(steps, "") ?? "", /needed/);
  assert.equal(problemOf({ ...steps, optional: true }, ""), null);
});

test("what a field offers at first is allowed", () => {
  // A number that only the person can know is asked for.
  for (const field of CATALOGUE.flatMap((entry) => entry.params ?? [])) {
    if (field.kind === "number" && field.value === "") continue;
    assert.equal(problemOf(field, String(field.value)), null, field.key);
    if (field.kind === "choice") assert.ok(field.options?.some((option) => option.value === field.value), field.key);
  }
});
