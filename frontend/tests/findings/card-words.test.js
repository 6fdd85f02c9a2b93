import assert from "node:assert/strict";
import test from "node:test";
import { factsText, piecesOf, placeText, remedyText, sizeLine, sourceOf, whereText } from "../../vramscope_frontend/js/findings/card-words.js";
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

test("facts before the detail, nothing while it is being made sure of", () => {
  assert.equal(factsText(made({ evidence: { facts: ["One.", 2, "Two."] } })), "One. Two.");
  assert.equal(factsText(made()), made().detail);
  assert.equal(factsText(made({ stage: "suspected" })), "");
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
