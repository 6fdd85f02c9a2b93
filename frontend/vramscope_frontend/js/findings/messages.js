// Shapes of findings and of reports of running out of memory, as the API sends them.

/** @typedef {"info" | "warning" | "critical"} FindingSeverity */
/**
 * Lines of the user's program around one line.
 * @typedef {{file: string, first_line: number, line: number, lines: string[]}} SourceLines
 */
/**
 * A line behind a finding, with what it keeps and who holds it.
 * @typedef {object} Culprit
 * @property {string} file  empty: not known
 * @property {number} line  0: not known
 * @property {string} function
 * @property {number | null} [bytes]
 * @property {number | null} [bytes_per_step]
 * @property {string[]} [tensors]
 * @property {string[]} [held_by]  from the tensor to a name that a person knows
 * @property {SourceLines} [source]
 */
/**
 * @typedef {object} Remedy
 * @property {string} action
 * @property {string} why  what it gains and what it does not
 * @property {number | null} predicted_bytes
 * @property {string} [cost]
 * @property {string} [fix]  text to copy
 * @property {string} [command]  name of the command that does it
 */
/** @typedef {"run" | "line" | "day"} MuteUntil */
/** @typedef {{reason: string, until: MuteUntil, by?: string, time_ns?: number, until_ns?: number | null}} Mute */
/** @typedef {{time_ns: number, what: string, severity: FindingSeverity, summary: string}} Turn */
/**
 * When memory is full at this pace. Steps and seconds count from `at_step` and the time of the judgement.
 * @typedef {object} Forecast
 * @property {number} early_s
 * @property {number} late_s
 * @property {number | null} [early_steps]
 * @property {number | null} [late_steps]
 * @property {number | null} [at_step]
 * @property {number} confidence
 * @property {number | null} [limit_bytes]
 */

/**
 * Something that is wrong, from when it was found until it is over; `resolved_ns` is null while it holds.
 * @typedef {object} Finding
 * @property {string} id
 * @property {string} run
 * @property {number | null} rank  null: of the run as a whole
 * @property {number[]} ranks
 * @property {string} kind
 * @property {FindingSeverity} severity
 * @property {number} confidence  0 to 1
 * @property {string} summary
 * @property {string} [detail]
 * @property {string} [subject]
 * @property {"suspected" | "confirmed"} [stage]
 * @property {number | null} [since_step]  by the job's own number
 * @property {number} [step_offset]  what makes it a place on the axis of steps
 * @property {"open" | "final" | "resolved"} [state]  final: it held when its rank or its run ended
 * @property {Turn[]} [history]  oldest first
 * @property {Record<string, any>} evidence
 * @property {Culprit[]} culprits
 * @property {Remedy[]} remedies
 * @property {number} opened_ns
 * @property {number | null} [confirmed_ns]
 * @property {number | null} resolved_ns
 * @property {number} [updated_ns]
 * @property {Mute | null} [muted]
 */

/** The most urgent finding of a run, as the list of runs has it. @typedef {Pick<Finding, "id" | "kind" | "severity" | "stage" | "summary"> & {forecast?: Forecast | null}} TopFinding */

export {};
