// Stacks as lines of "path/file.py:12 function", innermost first. Pure.

/** Frames that only pass a call on to the module's own code. */
const PASSING_ON = /[\\/]torch[\\/]nn[\\/]modules[\\/]module\.py:\d+ _(wrapped_)?call_impl$/;
const OF_TORCH = /[\\/]torch[\\/]/;

/** @param {string} stack */
export function ownFrames(stack) {
  const lines = stack.split("\n");
  const own = lines.filter((line) => !PASSING_ON.test(line));
  return own.length ? own : lines;
}

/**
 * The file without its folders.
 * @param {string} line
 */
export function shortFrame(line) {
  return line.replace(/^.*[\\/](?=[^\\/]*:\d+ )/, "");
}

/**
 * The innermost line that is not PyTorch's own: what a person would look for.
 * @param {string} stack
 */
export function stackName(stack) {
  const lines = ownFrames(stack);
  return shortFrame(lines.find((line) => !OF_TORCH.test(line)) ?? lines[0]);
}
