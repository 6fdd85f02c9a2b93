import assert from "node:assert/strict";
import test from "node:test";
import { ownFrames, shortFrame, stackName } from "../../vramscope_frontend/js/map/stacks.js";

test("frames that only pass a call on are left out, files lose their folders", () => {
  const stack = ["/a/train.py:20 forward", "/x/torch/nn/modules/module.py:1790 _call_impl", "/x/torch/nn/modules/module.py:1779 _wrapped_call_impl", "/a/train.py:66 oom"];
  assert.deepEqual(ownFrames(stack.join("\n")), [stack[0], stack[3]]);
  assert.deepEqual(ownFrames(stack[1]), [stack[1]]);
  assert.equal(shortFrame(stack[0]), "train.py:20 forward");
  assert.equal(shortFrame("C:\\a\\train.py:20 forward"), "train.py:20 forward");
});

test("a stack is named by its innermost line that is not PyTorch's own", () => {
  assert.equal(stackName("/x/torch/nn/modules/linear.py:134 forward\n/a/train.py:20 forward\n/a/train.py:66 oom"), "train.py:20 forward");
  assert.equal(stackName("/x/torch/optim/adam.py:178 _init_group\n/x/torch/optim/adam.py:9 step"), "adam.py:178 _init_group");
  assert.equal(stackName(""), "");
});
