// Receipts as numbers and sentences. Pure.

import { duration, inUnit, known, ranksText, sizeText, tableUnit } from "../format.js";

/** @typedef {import("../messages.js").Receipt} Receipt */
/** @typedef {import("../messages.js").Command} Command */
/** @typedef {{reserved: number | null, allocated: number | null, active: number | null, stranded: number | null, used: number | null, free: number | null}} Effect */

/**
 * Counters of one side of a receipt, under PyTorch's names with or without the pool and the gauge.
 * @param {Record<string, any> | undefined} side
 * @param {number | null} limit_bytes
 * @returns {Effect}
 */
export function effectOf(side, limit_bytes) {
  const pick = (/** @type {string[]} */ ...names) => {
    for (const name of names) if (known(side?.[name])) return /** @type {number} */ (side?.[name]);
    return null;
  };
  const used = pick("device.used_bytes", "used_bytes");
  return {
    reserved: pick("reserved_bytes.all.current", "reserved_bytes"),
    allocated: pick("allocated_bytes.all.current", "allocated_bytes"),
    active: pick("active_bytes.all.current", "active_bytes"),
    stranded: pick("inactive_split_bytes.all.current", "inactive_split_bytes", "stranded_bytes"),
    used,
    free: pick("device.free_bytes", "device_free_bytes") ?? (known(used) && known(limit_bytes) ? limit_bytes - used : null),
  };
}

/**
 * Receipts in the order of their ranks.
 * @param {Command} command
 * @returns {{rank: number, receipt: Receipt}[]}
 */
export function receiptsOf(command) {
  return Object.entries(command.receipts).map(([rank, receipt]) => ({ rank: Number(rank), receipt })).sort((a, b) => a.rank - b.rank);
}

/** @param {Command} command */
export function returnedBytes(command) {
  const amounts = receiptsOf(command).map(({ receipt }) => receipt.returned_bytes).filter(known);
  return amounts.length ? amounts.reduce((sum, bytes) => sum + bytes, 0) : null;
}

/**
 * What the next step takes back at least, if it is like the steps before: its peak has to fit.
 * @param {{reserved: number | null, returned: number | null, activePeak: number | null}} seen
 */
export function takenBack({ reserved, returned, activePeak }) {
  if (!known(reserved) || !known(returned) || !known(activePeak)) return null;
  return Math.min(returned, Math.max(0, activePeak - (reserved - returned)));
}

/**
 * @param {Command} dryRun
 * @param {number | null} activePeak of the last steps, on the one rank; null for several
 * @returns {{sentence: string, sub: string, returned: number | null, back: number | null}}
 */
export function dryRunSentence(dryRun, activePeak) {
  const receipts = receiptsOf(dryRun);
  const returned = returnedBytes(dryRun);
  if (!known(returned)) return { sentence: "What it would return is not known.", sub: receipts[0]?.receipt.message ?? "", returned, back: null };
  if (receipts.length > 1) {
    const amounts = receipts.map(({ receipt }) => receipt.returned_bytes).filter(known);
    const unit = tableUnit(Math.max(...amounts));
    return { sentence: returned === 0 ? "Would return nothing on any rank." : `Would return ${sizeText(returned)} in all, ${inUnit(Math.min(...amounts), unit)} to ${inUnit(Math.max(...amounts), unit)} ${unit.name} a rank.`, sub: "What the next step takes back differs by rank.", returned, back: null };
  }
  const before = effectOf(receipts[0].receipt.before, null);
  const idle = known(before.reserved) && known(before.active ?? before.allocated) ? before.reserved - /** @type {number} */ (before.active ?? before.allocated) : null;
  const back = takenBack({ reserved: before.reserved, returned, activePeak });
  if (returned === 0) return { sentence: "Would return nothing.", sub: known(idle) && idle > 0 ? `${sizeText(idle)} are free inside segments that are partly in use: they cannot be returned.` : "No segment is free.", returned, back };
  const of = known(idle) && idle >= returned ? ` of ${sizeText(idle)}` : "";
  const sentence = `Would return ${sizeText(returned)}${of}.${known(back) ? (back > 0 ? ` The next step takes at least ${sizeText(back)} back.` : "") : ""}`;
  const sub = known(back) ? `Lasting gain at most ${sizeText(returned - back)}, while the steps stay as they are.` : "How much the next step takes back is not known.";
  return { sentence, sub, returned, back };
}

/**
 * What a dry run says of a command that returns no memory: in the words of the rank.
 * @param {Command} dryRun
 */
export function plannedSentence(dryRun) {
  const told = receiptsOf(dryRun).map(({ receipt }) => shortIds(receipt.message ?? "")).filter(Boolean);
  const [sentence = "The ranks accept this.", ...rest] = told;
  const others = new Set(rest.filter((text) => text !== sentence));
  return { sentence, sub: others.size > 0 ? `The ranks differ: ${[...others].slice(0, 2).join(" ")}` : told.length > 1 ? "Every rank says the same." : "" };
}

/**
 * Of an id eight digits tell as much as all of them.
 * @param {string} text
 */
function shortIds(text) {
  return text.replace(/\b([0-9a-f]{8})[0-9a-f]{24}\b/g, "$1");
}

/**
 * Why it came to this state, by the first rank that says so; named where the ranks do not all say the same.
 * @param {Command} command
 * @param {number} world_size
 */
function reasonOf(command, world_size) {
  const told = receiptsOf(command).filter(({ receipt }) => receipt.message);
  const guilty = told.find(({ receipt }) => receipt.state === command.state) ?? told[0];
  if (!guilty) return undefined;
  const text = shortIds(guilty.receipt.message ?? "");
  const isOwn = world_size > 1 && told.some(({ receipt }) => receipt.message !== guilty.receipt.message) && !/\brank \d/i.test(text);
  return isOwn ? `rank ${guilty.rank}: ${text}` : text;
}

/**
 * Sentence on top of a receipt.
 * @param {Command} command
 * @param {number} world_size
 */
export function receiptSentence(command, world_size) {
  const receipts = receiptsOf(command);
  const message = reasonOf(command, world_size);
  const where = receipts.length ? ranksText(receipts.map(({ rank }) => rank), world_size) : ranksText(command.ranks, world_size);
  switch (command.state) {
    case "done": {
      const returned = returnedBytes(command);
      if (known(returned) && isAboutMemory(command)) return returned > 0 ? `${sizeText(returned)} returned to the device.` : "Nothing was returned: no segment was free.";
      return message ?? `Done on ${where}.`;
    }
    case "expired":
      return `Expired: ${message ?? "no optimizer step came within the deadline. Nothing was changed."}`;
    case "refused":
      return `Refused: ${message ?? "the agent does not allow it. Nothing was changed."}`;
    case "failed":
      return message && /rolled back/i.test(message) ? `Rolled back: ${message.replace(/^rolled back:\s*/i, "")}` : `Failed: ${message ?? "see the log of the job."}`;
    default:
      return `Waiting for the end of a step on ${where}.`;
  }
}

/**
 * Whether what counts of a receipt is memory that was returned.
 * @param {Command} command
 */
export function isAboutMemory(command) {
  return command.name.startsWith("empty_cache") || command.name === "gc_collect";
}

/**
 * Label of the button that does it: amount and ranks.
 * @param {import("./catalogue.js").CommandEntry} entry
 * @param {number | null} returned
 * @param {number[]} ranks
 * @param {number} world_size
 * @param {Record<string, any>} [values] of the parameters
 */
export function actionLabel(entry, returned, ranks, world_size, values = {}) {
  const frees = entry.name.startsWith("empty_cache");
  const amount = frees ? (known(returned) ? ` ${sizeText(returned)}` : " the cache") : "";
  const verb = entry.verb.replace(/ ?(?:to )?\{(\w+)\}/g, (text, key) => (values[key] === null || values[key] === undefined || values[key] === "" ? "" : text.replace(`{${key}}`, String(values[key]))));
  return `${verb}${amount} on ${ranksText(ranks, world_size)}`;
}

/**
 * @param {Command} command
 * @param {number} world_size
 */
export function receiptMarkdown(command, world_size) {
  const lines = [`**${command.name}** on ${ranksText(command.ranks, world_size)}: ${receiptSentence(command, world_size)}`, ""];
  for (const { rank, receipt } of receiptsOf(command)) {
    const before = effectOf(receipt.before, null);
    const after = effectOf(receipt.after, null);
    lines.push(`- rank ${rank}: ${receipt.state}${known(receipt.step) ? ` at step ${receipt.step}` : ""}, reserved ${sizeText(before.reserved)} to ${sizeText(after.reserved)}, took ${duration(receipt.took_s)}`);
  }
  lines.push("", `Command ${command.id}, by ${command.issued_by || "not known"} (${command.origin}).`);
  return lines.join("\n");
}
