import assert from "node:assert/strict";
import test from "node:test";
import { factsText, holdersOf, piecesOf, placesOf, placeText, remedyText, sizeLine, sourceOf, whereText } from "../../vramscope_frontend/js/findings/card-words.js";
import { made } from "./made-finding.js";

const GIB = 2 ** 30;

test("size, share and certainty in one line, only what is known", () => {
  assert.equal(sizeLine(made({ evidence: { grown_bytes: 13.6 * GIB, tensors: 4502, share: 1 } })), "13.6 GiB in 4,502 tensors · explains 100\u2009% of the growth · 97\u2009% sure");
  assert.equal(sizeLine(made({ confidence: 1 })), "");
  assert.equal(sizeLine(made({ stage: "suspected", culprits: [{ file: "", line: 0, function: "", bytes: GIB }] })), "1.0 GiB · being made sure of");
});

test("a remedy says what it gains once, and what it costs", () => {
  const remedy = { action: "a", why: "frees 4.2 GiB at once", predicted_bytes: 4.2 * GIB, cost: "a pause" };
  assert.equal(remedyText(remedy), "Frees 4.2 GiB at once. Cost: a pause.");
  assert.equal(remedyText({ ...remedy, why: "Stops the growth", cost: "" }), "Stops the growth. About 4.2 GiB.");
  assert.equal(remedyText({ ...remedy, why: "Helps.", predicted_bytes: null, cost: "" }), "Helps.");
});

test("lines of the program are shown only whole", () => {
  const source = { file: "train.py", first_line: 54, line: 56, lines: ["a", "b", "c"] };
  assert.equal(sourceOf(made({ evidence: { source } })), source);
  for (const broken of [{}, { ...source, lines: [] }, { ...source, line: null }, "text"]) assert.equal(sourceOf(made({ evidence: { source: broken } })), null);
});

test("facts are those that were sent as such", () => {
  assert.equal(factsText(made({ evidence: { facts: ["One.", 2, "Two."] } })), "One. Two.");
  assert.equal(factsText(made()), "");
});

test("each place and each holder is said once", () => {
  const culprits = [{ file: "/x/a.py", line: 20, function: "<module>", tensors: ["float32[8]"], held_by: ["M.values"] }, { file: "/x/a.py", line: 14, function: "main", tensors: ["float32[8]"], held_by: ["M.values"] }, { file: "/x/a.py", line: 20, function: "again" }];
  assert.deepEqual(placesOf(made({ culprits }), 3).map((one) => [one.text, one.within]), [["a.py:20", ""], ["a.py:14", "main"]]);
  assert.deepEqual(holdersOf(made({ culprits }), 3), [{ chain: "M.values", tensors: "float32[8]" }]);
});

test("places and ranks are short", () => {
  assert.deepEqual([placeText({ file: "/a/b/train.py", line: 56 }), placeText({ file: "x.py", line: 0 }), placeText({ file: "", line: 3 })], ["train.py:56", "x.py", ""]);
  assert.deepEqual([[41], [1, 2], [0, 1, 2, 3, 4], []].map((ranks) => whereText({ ranks }, 8)), ["rank 41", "ranks 1, 2", "5 ranks", ""]);
  assert.deepEqual([whereText({ ranks: [0] }, 1), whereText({ ranks: [0, 1] }, 2)], ["", "all 2 ranks"]);
});

test("code in a sentence is found, and every character is kept", () => {
  const text = "Leaking at model/moe.py:88. Append `loss.detach()` instead; 3.1 MiB";
  const pieces = piecesOf(text);
  assert.deepEqual(pieces.filter((piece) => piece.isCode).map((piece) => piece.text), ["model/moe.py:88", "loss.detach()"]);
  assert.equal(pieces.map((piece) => piece.text).join(""), text.replaceAll("`", ""));
  assert.deepEqual(piecesOf("nothing"), [{ text: "nothing", isCode: false }]);
});
