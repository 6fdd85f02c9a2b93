// From one block to the next: along a row, through the segments as they are placed, and across rows.

/** @typedef {import("./map-facts.js").Place} Place */
/** @typedef {import("./packing.js").Packing} Packing */

/**
 * @param {Packing} packing
 * @param {Place | null} from  null begins at the first, or at the last when going back
 * @param {number} step  1 or -1
 * @returns {Place | null}
 */
export function blockBeside(packing, from, step) {
  const { placed } = packing;
  if (!placed.length) return null;
  if (!from) {
    const { segment } = step > 0 ? placed[0] : placed[placed.length - 1];
    return { segment, index: step > 0 ? 0 : segment.states.length - 1 };
  }
  const index = from.index + step;
  if (index >= 0 && index < from.segment.states.length) return { segment: from.segment, index };
  const number = placed.findIndex(({ segment }) => segment.address === from.segment.address) + step;
  const next = placed[number]?.segment;
  return next ? { segment: next, index: step > 0 ? 0 : next.states.length - 1 } : null;
}

/**
 * The block above or below the middle of this one.
 * @param {Packing} packing
 * @param {Place | null} from
 * @param {number} rows
 * @returns {Place | null}
 */
export function rowNeighbour(packing, from, rows) {
  if (!from) return blockBeside(packing, null, rows);
  const start = packing.startOf(from.segment.address);
  if (start === null) return null;
  const { segment, index } = from;
  const width = packing.row_bytes;
  const begin = start + segment.offsets[index];
  const end = begin + segment.sizes[index];
  const middle = (begin + Math.min(end, (Math.floor(begin / width) + 1) * width)) / 2;
  const row = (rows > 0 ? Math.ceil(end / width) - 1 : Math.floor(begin / width)) + rows;
  if (row < 0 || row >= packing.rows) return null;
  const at = row * width + (middle % width);
  // Beyond the end of a row, its last block.
  for (const x of [at, row * width + Math.min(at % width, packing.used[row] - packing.gap_bytes - 1)]) {
    const found = packing.blockAt(x);
    if (found) return found;
  }
  return null;
}
