// Shapes of the reports of running out of memory, as the API sends them. Null is not known.

/**
 * One row of the list.
 * @typedef {object} OomRow
 * @property {string} id
 * @property {string} run
 * @property {number} rank
 * @property {number} time_ns
 * @property {number | null} step
 * @property {string} phase
 * @property {string} part
 * @property {string} [thread]
 * @property {string} source  observer, exception, counter; asked: another rank ran out, not this one
 * @property {string} [detail]  light: one of many in a row
 * @property {number} [skipped]  times since the report before that left none
 * @property {number | null} request_bytes
 * @property {number | null} [segment_bytes]
 * @property {number | null} allowed_bytes
 * @property {number | null} [device_free_bytes]
 * @property {string} [message]
 * @property {boolean} [is_fatal]
 * @property {number | null} recovered_step
 * @property {string | null} linked_to
 * @property {string} state
 * @property {string | null} summary
 * @property {import("../findings/messages.js").FindingSeverity | null} severity
 */
/** @typedef {{file: string, line: number, function?: string}} Frame */
/** @typedef {{file: string, line: number, function?: string, bytes: number, count: number, category?: string}} HeldByStack */
/** @typedef {{tensor: string, bytes: number, category?: string, name?: string, held_by?: string[]}} LargeTensor */
/** @typedef {{pool: string, stream: number, bytes: number, count: number, largest_bytes: number, returnable_bytes?: number | null}} FreePool */
/** @typedef {{time_ns: number[], number: number[] | null, columns: Record<string, (number | null)[]>}} ReportRows */

/**
 * What was known at the moment at which a process ran out of memory.
 * @typedef {object} OomReport
 * @property {number} time_ns
 * @property {number | null} step
 * @property {string} phase
 * @property {string} part
 * @property {string} thread
 * @property {string} source
 * @property {string} message
 * @property {boolean} [complete]
 * @property {string[]} [notes]
 * @property {boolean} [emulated]
 * @property {string} [device_name]
 * @property {number | null} request_bytes
 * @property {number | null} segment_bytes
 * @property {number | null} allowed_bytes
 * @property {number | null} device_free_bytes
 * @property {number | null} device_total_bytes
 * @property {Record<string, number>} counters
 * @property {FreePool[]} free_blocks
 * @property {HeldByStack[]} by_stack
 * @property {{requested_bytes: number | null, count: number, bytes: number}[]} by_size
 * @property {Record<string, number>} by_category
 * @property {LargeTensor[]} largest
 * @property {number | null} garbage_bytes
 * @property {{pid: number, command?: string, bytes: number | null, own?: boolean}[]} processes
 * @property {{name: string, bytes: number}[]} outside
 * @property {ReportRows} [samples]
 * @property {ReportRows} [steps]
 * @property {string | null} settings
 * @property {{name: string, frames: Frame[], is_own?: boolean, raised?: boolean}[]} threads
 * @property {number | null} recovered_step
 */

/** @typedef {OomRow & {siblings: {id: string, rank: number, time_ns: number}[], report: OomReport, finding: import("../findings/messages.js").Finding | null}} OomAnswer */

export {};
