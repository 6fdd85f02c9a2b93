// Shapes of what travels between page and server. The structs of protocol/vramscope_protocol/live.py
// stand here under their own names and are compared with it by a test; the rest is the REST API.

/**
 * Follow the list of runs.
 * @typedef {{type: "subscribe_runs", id: number}} SubscribeRuns
 */
/**
 * Follow one run, and the named series of the named ranks.
 * @typedef {{type: "subscribe_run", id: number, run: string, fields: string[], ranks: number[] | null, map?: number | null}} SubscribeRun
 */
/**
 * @typedef {{type: "unsubscribe", id: number, subscription: number}} Unsubscribe
 */
/**
 * @typedef {{type: "ping", id: number}} Ping
 */
/**
 * First frame of the server.
 * @typedef {{type: "hello", protocol: number, scopes: string[], server_time_ns: number, software: string, features: string[]}} LiveHello
 */
/**
 * @typedef {{code: string, message: string, detail: Record<string, any>}} ErrorBody
 */
/**
 * Answer to one request.
 * @typedef {{type: "result", id: number, ok: boolean, error: ErrorBody | null}} Result
 */
/** @typedef {SubscribeRuns | SubscribeRun | Unsubscribe | Ping} LiveRequest */
/** @typedef {{type: "event", id: number, event: LiveEvent}} EventFrame */

/**
 * Payload of a subscription, told apart by `kind`. Kinds that are not listed are ignored.
 * @typedef {RunsEvent | RunChanged | SamplesEvent | StepsEvent | MarkEvent | CommandEvent | StatusEvent | FindingEvent | SnapshotEvent | OomEvent | MapEvent} LiveEvent
 */
/** @typedef {{kind: "runs", runs: Run[]}} RunsEvent */
/** @typedef {{kind: "run", run: Run}} RunChanged */
/** @typedef {{kind: "samples", rank: number, time_ns: number[], columns: Columns}} SamplesEvent */
/** @typedef {{kind: "steps", rank: number, life?: number, step_offset?: number, step: number[], time_ns: number[], columns: Columns}} StepsEvent */
/** @typedef {{kind: "event", event: RunEvent}} MarkEvent */
/** @typedef {{kind: "snapshot", snapshot: SnapshotInfo}} SnapshotEvent */
/** @typedef {{kind: "command", command: Command}} CommandEvent */
/** @typedef {{kind: "status", rank: number, status: AgentStatus}} StatusEvent */
/** @typedef {{kind: "finding", finding: Finding}} FindingEvent */
/** @typedef {{kind: "oom", oom: import("./oom/messages.js").OomRow}} OomEvent */
/** @typedef {{kind: "map"} & MapFrame} MapEvent */

/** @typedef {Record<string, (number | null)[]>} Columns */
/** @typedef {"live" | "ended" | "lost"} RunState */

/**
 * @typedef {object} Run
 * @property {string} id
 * @property {string} name
 * @property {RunState} state
 * @property {number} started_ns
 * @property {number | null} ended_ns
 * @property {number | null} last_seen_ns
 * @property {number} world_size
 * @property {boolean} emulated
 * @property {string} user
 * @property {string} script
 * @property {string | null} device_name
 * @property {number | null} device_total_bytes
 * @property {number | null} step
 * @property {number | null} peak_reserved_bytes
 * @property {number | null} used_bytes
 * @property {number} ranks_connected
 * @property {number} fullest_rank  the rank with the highest use so far
 * @property {number | null} exit_code  the first that is not 0, else 0 where any rank told one
 * @property {number} [ranks_live]
 * @property {number} [ranks_lost]
 * @property {number} [restarts]  most of any rank
 * @property {number | null} [restarted_ns]  when the newest process that took a rank over began
 * @property {import("./findings/messages.js").TopFinding | null} [finding]  the most urgent that holds, or held when the run ended
 * @property {Record<import("./findings/messages.js").FindingSeverity, number>} [findings_open]  that hold and are not muted
 * @property {Rank[]} [ranks]  Only where one run is asked for.
 */

/**
 * @typedef {object} Rank
 * @property {number} rank
 * @property {string} host
 * @property {number} pid
 * @property {number} local_rank
 * @property {RunState} state
 * @property {boolean} connected
 * @property {number} started_ns
 * @property {number | null} ended_ns
 * @property {number | null} last_seen_ns
 * @property {number | null} exit_code
 * @property {"exit" | "detach" | "exception" | null} end_reason
 * @property {string | null} end_text
 * @property {DeviceInfo[]} devices
 * @property {string | null} device_uuid
 * @property {string | null} device_name
 * @property {number | null} device_total_bytes
 * @property {Record<string, string>} software
 * @property {"observe" | "control"} allow
 * @property {string[]} commands
 * @property {UserCommand[]} [user_commands]  that the job itself declares
 * @property {string} stream
 * @property {number} restarts  how often another process took it over
 * @property {number} [reattaches]  how often the same process was attached again
 * @property {Life[]} [lives]  oldest first; of many the newest
 * @property {number} [restart_count]  restarts by the launcher's own count
 * @property {number} [max_restarts]  how many it allows, 0 if none or not known
 * @property {string} [launcher]
 * @property {string} [job]
 * @property {number} samples_received
 * @property {number} samples_lost
 * @property {Record<string, number>} losses
 * @property {number} steps_received
 * @property {number} [steps_lost]
 * @property {number | null} step
 * @property {AgentStatus | null} status
 */

/**
 * One process of a rank from attaching to its end.
 * @typedef {object} Life
 * @property {number} life  number among all of the rank, the first is 0
 * @property {string} stream
 * @property {"start" | "restart" | "attach" | "handover"} kind
 * @property {string} host
 * @property {number} pid
 * @property {number} started_ns
 * @property {number} last_seen_ns
 * @property {number | null} ended_ns
 * @property {"exit" | "detach" | "exception" | null} end_reason
 * @property {string | null} end_text
 * @property {number | null} exit_code
 * @property {number | null} first_step
 * @property {number | null} last_step
 * @property {number} step_offset  added to its step numbers they rise over all lives
 */

/**
 * One device of a rank; fields with their default are left out on the wire.
 * @typedef {{index: number, name: string, uuid?: string, total_bytes?: number | null, limit_bytes?: number | null, emulated?: boolean, backend?: string}} DeviceInfo
 */
/**
 * What watching costs; fields with their default may be left out.
 * @typedef {{rate_hz: number, cost_fraction: number, outbox_bytes?: number, spool_bytes?: number, guard_errors?: number, notes?: string[], account?: AgentAccount | null, processes?: ProcessMemory[], outside?: MemoryPart[]}} AgentStatus
 */
/**
 * What the agent has cost and done since attach; fields with their default may be left out.
 * @typedef {{elapsed_us?: number, cpu_us?: Record<string, number>, turns?: number, gil_us?: number | null, samples?: number, sent_bytes?: number, queued_messages?: number, wanted_rate_hz?: number, budget_fraction?: number, lost?: Record<string, number>, errors?: Record<string, number>}} AgentAccount
 */
/**
 * A command that the job itself declares; fields with their default may be left out.
 * @typedef {{name: string, summary?: string, right?: "view" | "control", place?: "step boundary" | "agent thread", same_step?: boolean, changes_training?: boolean, params?: UserParam[]}} UserCommand
 */
/**
 * One value of its form. Without a default it has to be given.
 * @typedef {{name: string, kind: "int" | "float" | "str" | "bool" | "choice", default?: number | string | boolean | null, choices?: string[], least?: number | null, most?: number | null}} UserParam
 */
/** @typedef {import("./findings/messages.js").Finding} Finding */
/** @typedef {{pid: number, command?: string, bytes?: number | null}} ProcessMemory */
/** @typedef {{name: string, bytes: number, how?: string}} MemoryPart */
/** @typedef {{time_ns: number, rank: number | null, step: number | null, kind: string, text: string, data: Record<string, any>}} RunEvent */
/** @typedef {"queued" | "prepared" | "running" | "done" | "failed" | "refused" | "expired"} CommandState */

/**
 * What a command did on one rank; fields with their default may be left out.
 * @typedef {{state: CommandState, step?: number | null, before?: Record<string, any>, after?: Record<string, any>, returned_bytes?: number | null, took_s?: number | null, message?: string, result?: any, dry_run?: boolean, time_ns?: number | null}} Receipt
 */

/**
 * @typedef {object} Command
 * @property {string} id
 * @property {string} name
 * @property {Record<string, any>} params
 * @property {boolean} dry_run
 * @property {number[]} ranks
 * @property {CommandState} state
 * @property {string} issued_by
 * @property {"browser" | "cli" | "api" | "server" | "policy"} origin
 * @property {number} created_ns
 * @property {number} deadline_ns
 * @property {number | null} finished_ns
 * @property {Record<string, Receipt>} receipts
 * @property {string} [note]  how the ranks run it, where that is not what is usual
 * @property {{at_step: number | null, decision: "run" | "drop" | null, reason: string, decided_ns: number | null, prepared?: number} | null} [agreement]  of a command for one step of all its ranks
 */

/**
 * The memory map of a rank: whole, or what changed since the frame `base`. Blocks are the rows of
 * all segments in their order and fill them; -1 stands for no text, and for a block that was there
 * at the first look.
 * @typedef {object} MapFrame
 * @property {number} rank
 * @property {number} number
 * @property {number} base  0: whole
 * @property {number} time_ns
 * @property {number | null} step
 * @property {boolean} is_step_end  taken between two steps
 * @property {number} rate_hz  looks a second; 0 is on request only
 * @property {number} took_us
 * @property {string} why_not  why there is no map, or empty
 * @property {number} since_ns
 * @property {number} device_index
 * @property {number | null} limit_bytes
 * @property {number | null} device_free_bytes
 * @property {string} summary  what is not shown block by block, or empty
 * @property {Record<"address" | "size" | "stream" | "pool_owner" | "pool_number" | "page_bytes" | "flags" | "blocks", number[]>} segments
 * @property {Record<"size" | "requested" | "state" | "category" | "owner" | "stack" | "first_step" | "first_ms" | "count", number[]>} blocks
 * @property {number[]} gone
 * @property {number} first_text
 * @property {string[]} texts
 */

/** @typedef {{min: (number | null)[], mean: (number | null)[], max: (number | null)[]}} Bins */
/** @typedef {{resolution_ms: number, time_ns: number[], columns: Record<string, Bins>, rank: number}} SeriesPayload */
/** @typedef {{step: number[], time_ns: number[], columns: Columns, life?: number[], step_offsets?: number[]}} StepsPayload */
/** @typedef {{name: string, unit: string, definition: string}} SeriesName */
/** @typedef {{scopes: string[], name: string, server: {version: string, host: string, port: number, attach_list?: boolean, found_by_jobs?: boolean}}} Session */

/**
 * What is known of a stored snapshot without opening it.
 * @typedef {object} SnapshotInfo
 * @property {string} id
 * @property {string | null} run
 * @property {number | null} rank
 * @property {number | null} device
 * @property {number | null} step
 * @property {number | null} taken_ns
 * @property {number} received_ns
 * @property {string} mode what is in it: segments, state, alloc, all, user
 * @property {boolean} stacks
 * @property {string} origin command, rule, upload
 * @property {string} name of the file, empty if it has none
 * @property {"receiving" | "incomplete" | "complete" | "failed" | "deleted"} state
 * @property {string} reason
 * @property {number | null} raw_bytes of the pickle
 * @property {number | null} wire_bytes of what is sent of it
 * @property {number} received_bytes
 * @property {string} issued_by
 * @property {[number, number][]} [steps] ends of the steps that were recorded: number, microseconds
 */

/** @typedef {"parameters" | "gradients" | "optimizer" | "activations" | "backward" | "other" | "unknown"} MemoryCategory */
/** @typedef {{label: string, category: MemoryCategory | null, file: string}} MemoryGroup */
/** @typedef {MemoryGroup & {bytes: number, blocks: number}} HeldMemory */
/** @typedef {{x: number, moment: number, step: number | null, ordinal: number}} RecordedStep */

/**
 * What every answer about an opened snapshot says of it. A moment is the number of the trace entry
 * after which it is; -1 is before the first.
 * @typedef {object} RecordingFacts
 * @property {number} device
 * @property {number[]} devices
 * @property {number} entries
 * @property {boolean} has_history
 * @property {boolean} has_stacks
 * @property {number} peak moment
 * @property {number} peak_bytes
 * @property {number} end moment
 * @property {number} end_bytes
 * @property {number} unseen_allocs
 * @property {number} unseen_frees
 */

/** @typedef {RecordingFacts & {ooms: {x: number, moment: number, size: number}[], by: string, unit: "us" | "entry", start: number, end_x: number, moments: number[], x: number[], total: number[], reserved: number[], groups: MemoryGroup[], bytes: number[][], window_peak: number, steps: RecordedStep[], scopes: {name: string, start: number, end: number}[]}} RecordingTimeline */
/** @typedef {{parent: number[], name: string[], place: string[], file: string[], bytes: number[], blocks: number[], category: (MemoryCategory | null)[], small: number[]}} CallTree */
/** @typedef {{address: string, size_bytes: number, requested_bytes: number, label: string, category: MemoryCategory, born: number, age_us: number | null, is_pending: boolean}} HeldBlock */
/** @typedef {RecordingFacts & {moment: number, time_us: number | null, live_bytes: number, requested_bytes: number, pending_bytes: number, before_bytes: number, reserved_bytes: number, blocks: number, by_stack: HeldMemory[], by_line: HeldMemory[], by_category: HeldMemory[], by_size: HeldMemory[], largest: HeldBlock[], folded: boolean, tree: CallTree}} MomentPayload */
/** @typedef {{label: string, category: MemoryCategory, file: string, before_bytes: number, after_bytes: number, before_blocks: number, after_blocks: number, survived_bytes: number, survived_blocks: number}} GrownMemory */
/** @typedef {{before_bytes: number, after_bytes: number, survived_bytes: number, is_certain: boolean, by_request: boolean, rows: GrownMemory[]}} GrowthPayload */

/**
 * A training process of the server's machine, as `vramscope ps` lists it; what is not known is null.
 * @typedef {object} MachineJob
 * @property {number} pid
 * @property {string} user
 * @property {string} command
 * @property {string | null} python
 * @property {string | null} torch
 * @property {number | null} gpu_bytes
 * @property {{index: number, uuid: string, name: string, bytes?: number | null}[]} gpus
 * @property {boolean} attachable
 * @property {string | null} why_not
 * @property {string | null} fix
 * @property {boolean} attached
 * @property {number} workers
 * @property {number} started_ns
 * @property {boolean} container
 * @property {{id: string, name: string} | null} run  the run that it is known as here
 */
/** @typedef {{name: string, params: Record<string, any>, ranks: number[] | "all", dry_run: boolean, deadline_s: number, id?: string}} CommandRequest */

/** @typedef {{series: string, op: ">" | "<", value: number, ranks: "any" | "all"}} SeriesCondition */
/** @typedef {{finding: string | null, severity: "info" | "warning" | "critical", confirmed: boolean}} FindingCondition a finding of null is of any kind */

/**
 * What makes a policy; as it is sent.
 * @typedef {object} PolicyBody
 * @property {string} name
 * @property {string | null} run  name or id of a run; null is all of them
 * @property {SeriesCondition | FindingCondition} when
 * @property {{seconds: number} | {steps: number} | null} for  null: at once
 * @property {{command: string, params: Record<string, any>, ranks: "all" | "matching" | number[]}} then
 * @property {number} every_s  at most every, for each run
 * @property {"dry_run" | "act"} mode
 * @property {boolean} allow_training
 * @property {boolean} is_on
 */

/**
 * @typedef {PolicyBody & {id: string, off_reason: string, failures_in_a_row: number, says: string, created_ns: number, created_by: string, changed_ns: number, changed_by: string, fired: number, last_fired_ns: number | null, watching: PolicyWatch[]}} Policy
 */
/** @typedef {{run: string, run_name: string, holds: boolean, ranks: number[], held_s: number | null, held_steps: number | null, value: number | null, note: string}} PolicyWatch */
/** @typedef {{id: number, policy: string, run: string, run_name: string, time_ns: number, mode: "dry_run" | "act", ranks: number[], why: string, command: string, params: Record<string, any>, command_id: string | null, state: "waiting" | "done" | "failed" | "refused" | "expired" | "logged", result: string}} PolicyFiring */
/** @typedef {{id: number, time_ns: number, who: string, origin: "browser" | "cli" | "api" | "server" | "policy", address: string, run: string, run_name: string, command_id: string, name: string, ranks: number[] | "all", dry_run: boolean, params: Record<string, any>, result: string}} AuditRow */

export {};
