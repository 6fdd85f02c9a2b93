// The six figures under the sentence: order fixed, head-room first.

import { el, fill, setAttribute, setText } from "../dom.js";
import { count, durationParts, exactBytes, gib, known, mibPerStep, percent, plural, size, sizeText } from "../format.js";
import { headroomSeverity } from "../run-state.js";

/** @typedef {import("../run-summary.js").Summary} Summary */
/** @typedef {import("../run-summary.js").StepFacts} StepFacts */
/** @typedef {import("../messages.js").Run} Run */

class Cell {
  /**
   * @param {string} label
   * @param {string} definition
   */
  constructor(label, definition) {
    this.label = el("div", { class: "label", title: definition }, label);
    this.number = el("span", {});
    this.unit = el("small", {});
    this.value = el("div", { class: "value" }, this.number, this.unit);
    this.extra = el("div", { hidden: true });
    this.note = el("div", { class: "note" });
    this.element = el("div", { class: "cell" }, this.label, this.value, this.extra, this.note);
  }

  /**
   * @param {string} value
   * @param {string} unit
   * @param {string} note
   * @param {string | null} [exact]
   */
  show(value, unit, note, exact = null) {
    setText(this.number, value);
    setText(this.unit, unit);
    setText(this.note, note);
    setAttribute(this.note, "title", note || null);
    setAttribute(this.value, "title", exact);
  }
}

export class Stats {
  constructor() {
    this.headroom = new Cell("Head-room at peak", "What the device had left at the highest moment that was seen.");
    this.allocated = new Cell("Allocated, peak of step", "Highest number of bytes in tensors during the last step: exact where the agent counts peaks by step, else as far as samples and PyTorch's own peak show it.");
    this.reserved = new Cell("Reserved", "Bytes that PyTorch holds from the device: segments, used or cached.");
    this.growth = new Cell("Growth", "Measured slope of the bytes allocated at step ends, over the steps shown, with two standard errors. It says nothing about the cause.");
    this.time = new Cell("Step time", "Median time of the last 20 optimizer steps.");
    this.cost = new Cell("Cost of watching", "CPU time of the agent's threads, as a share of one core.");
    this.gaugeFill = el("span", { class: "fill" });
    this.gaugeTick = el("span", { class: "tick" });
    this.gauge = el("div", { class: "gauge", role: "img", "aria-label": "Bar: in use at step end; tick: at the peak" }, this.gaugeFill, this.gaugeTick);
    fill(this.headroom.extra, this.gauge);
    this.element = el("section", { class: "panel stats", "aria-label": "Figures" }, ...[this.headroom, this.allocated, this.reserved, this.growth, this.time, this.cost].map((cell) => cell.element));
  }

  /**
   * @param {Summary} summary
   * @param {StepFacts | null} facts null where all ranks are shown together
   * @param {Run} run
   * @param {"crit" | "warn" | null} [growing] a finding says so
   */
  show(summary, facts, run, growing = null) {
    this.showHeadroom(summary, facts);
    this.growth.number.className = facts && growing ? growing : "";
    if (facts) this.showRank(facts);
    else this.showAll(summary, run);
    const lost = summary.samplesLost;
    this.cost.show(
      known(summary.cost) ? (summary.cost * 100).toFixed(summary.cost < 0.0995 ? 2 : 1) : "–",
      "% of a core",
      [known(summary.rate_hz) && `${Math.round(summary.rate_hz * 10) / 10} Hz`, lost > 0 ? `${plural(lost, "sample")} lost` : summary.samplesReceived > 0 && "nothing lost"].filter(Boolean).join(" · "),
    );
    this.cost.note.classList.toggle("warn", lost > 0);
  }

  /**
   * @param {Summary} summary
   * @param {StepFacts | null} facts
   */
  showHeadroom({ limit, peak, worst, rank }, facts) {
    const total = limit.bytes;
    const free = known(total) && peak ? Math.max(0, total - peak.used) : null;
    const { value, unit } = size(free);
    setText(this.headroom.label, rank === null && worst ? `Head-room at peak, rank ${worst.rank}` : "Head-room at peak");
    const share = known(free) && known(total) ? ` · ${percent(free / total)}` : "";
    this.headroom.show(value, `${unit}${share}`, "", exactBytes(free));
    const severity = headroomSeverity(free, total);
    this.headroom.number.className = severity === "crit" ? "crit" : severity === "warn" ? "warn" : "";
    const gauged = known(total) && peak !== null;
    this.headroom.extra.hidden = !gauged;
    this.headroom.note.hidden = gauged;
    if (!gauged || !known(total) || !peak) return;
    this.gaugeFill.style.width = `${Math.min(100, ((facts?.used ?? peak.used) / total) * 100)}%`;
    this.gaugeTick.style.left = `${Math.min(100, (peak.used / total) * 100)}%`;
  }

  /** @param {StepFacts} facts */
  showRank(facts) {
    const allocated = size(facts.allocatedPeak);
    const largest = facts.largest;
    setText(this.allocated.label, facts.bySteps ? "Allocated, peak of step" : "Allocated now");
    this.allocated.show(allocated.value, allocated.unit, largest ? `largest ${gibOr(largest.value)}${largest.isEarlier ? ", before the restart" : Number.isFinite(largest.step) ? ` at step ${count(largest.step)}` : ""}` : "", exactBytes(facts.allocatedPeak));
    const reserved = size(facts.reserved);
    setText(this.reserved.label, "Reserved");
    this.reserved.show(reserved.value, reserved.unit, known(facts.quietSteps) ? (facts.quietSteps > 0 ? `no device allocation for ${plural(facts.quietSteps, "step")}` : "device allocation in the last step") : "", exactBytes(facts.reserved));
    const { growth } = facts;
    setText(this.growth.label, "Growth");
    this.growth.show(growth ? mibPerStep(growth.slope) : "–", "MiB/step", growth ? `±${mibPerStep(growth.error).replace("+", "")} over ${plural(growth.steps, "step")}` : facts.isFurther ? "told of the device of the steps" : "needs 40 steps");
    const time = durationParts(facts.stepTime_s);
    const slow = durationParts(facts.slow_s);
    setText(this.time.label, "Step time");
    this.time.show(time.value, time.unit, [known(facts.slow_s) && `p95 ${slow.value}${slow.unit === time.unit ? "" : ` ${slow.unit}`}`, known(facts.retries) && plural(facts.retries, "allocator retry", "allocator retries")].filter(Boolean).join(" · "));
  }

  /**
   * @param {Summary} summary
   * @param {Run} run
   */
  showAll({ rows, worst, samplesLost }, run) {
    const peaks = rows.map((row) => row.peak).filter(known);
    setText(this.allocated.label, "Used at peak, highest rank");
    const most = size(peaks.length ? Math.max(...peaks) : null);
    this.allocated.show(most.value, most.unit, worst ? `rank ${worst.rank}` : "");
    setText(this.reserved.label, "Used at peak, lowest rank");
    const least = size(peaks.length ? Math.min(...peaks) : null);
    this.reserved.show(least.value, least.unit, spreadText(peaks));
    setText(this.growth.label, "Ranks connected");
    this.growth.show(count(run.ranks_connected), `of ${count(run.world_size)}`, "");
    setText(this.time.label, "Step");
    this.time.show(count(run.step), "", samplesLost > 0 ? `${plural(samplesLost, "sample")} lost` : "");
  }
}

/** @param {number[]} peaks */
function spreadText(peaks) {
  if (peaks.length === 0) return "";
  const spread = Math.max(...peaks) - Math.min(...peaks);
  return spread > 0 ? `spread ${sizeText(spread)}` : "all ranks alike";
}

/** @param {number} bytes */
function gibOr(bytes) {
  const { value, unit } = size(bytes);
  return unit === "GiB" ? gib(bytes) : `${value} ${unit}`;
}
