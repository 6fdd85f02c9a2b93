// The REST API as typed calls. Every failure is an ApiError that can be shown as it is.

/** @typedef {import("./messages.js").Run} Run */
/** @typedef {import("./messages.js").Command} Command */
/** @typedef {import("./messages.js").CommandRequest} CommandRequest */

const DEADLINE_MS = 20_000;
/** A large snapshot takes its time to be opened, and a file to be sent. */
const OPENING_MS = 120_000;

/** @type {{credentials: RequestCredentials, headers: Record<string, string>}} */
const caller = { credentials: "same-origin", headers: { Accept: "application/json" } };

/**
 * Be who this token says from now on, and nobody else: the cookie of who looks is left at home.
 * @param {string} token
 */
export function useToken(token) {
  caller.credentials = "omit";
  Object.assign(caller.headers, { Authorization: `Bearer ${token}`, "X-Vramscope-Origin": "browser" });
}

export class ApiError extends Error {
  /**
   * @param {number} status 0 when no answer came
   * @param {string} code
   * @param {string} message
   */
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * @param {string} path
 * @param {{method?: string, body?: unknown, file?: Blob, signal?: AbortSignal, deadline_ms?: number}} [options]
 * @returns {Promise<any>}
 */
async function call(path, { method = "GET", body, file, signal, deadline_ms = file ? OPENING_MS : DEADLINE_MS } = {}) {
  const deadline = AbortSignal.timeout(deadline_ms);
  const type = file ? "application/octet-stream" : body === undefined ? null : "application/json";
  /** @type {Response} */
  let response;
  try {
    response = await fetch(path, {
      method,
      credentials: caller.credentials,
      headers: type === null ? caller.headers : { ...caller.headers, "Content-Type": type },
      body: file ?? (body === undefined ? undefined : JSON.stringify(body)),
      signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", deadline.aborted ? `No answer within ${deadline_ms / 1000} s.` : "The server does not answer.");
  }
  const text = await response.text();
  if (response.ok) return text ? JSON.parse(text) : null;
  throw apiError(response.status, text);
}

/**
 * @param {number} status
 * @param {string} text
 */
function apiError(status, text) {
  try {
    const { error } = JSON.parse(text);
    return new ApiError(status, error.code, error.message);
  } catch {
    // Not one of our answers (a proxy, a crash): show what is known.
    return new ApiError(status, `http_${status}`, `The server answered with status ${status}.`);
  }
}

/** @param {Record<string, string | number | null | undefined>} parameters */
function query(parameters) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined) search.set(name, typeof value === "number" ? String(Math.round(value)) : value);
  }
  return `?${search}`;
}

/** @param {string} run */
const runPath = (run) => `/api/v1/runs/${encodeURIComponent(run)}`;

/** @param {string} id */
const snapshotPath = (id) => `/api/v1/snapshots/${encodeURIComponent(id)}`;

/** @param {string} id */
const policyPath = (id) => `/api/v1/policies/${encodeURIComponent(id)}`;

/** @typedef {{run?: string | null, who?: string | null, command?: string | null, since_ns?: number | null, until_ns?: number | null}} AuditFilter */

export const api = {
  /** @returns {Promise<import("./messages.js").Session>} */
  session: () => call("/api/v1/session"),
  /** @returns {Promise<import("./messages.js").SeriesName[]>} */
  seriesNames: async () => (await call("/api/v1/series-names")).series,
  /** @param {string} token */
  login: (token) => call("/login", { method: "POST", body: { token } }),
  /** @param {string} run @returns {Promise<Run>} */
  run: (run) => call(runPath(run)),
  /**
   * @param {string} run
   * @param {{fields: string[], rank: number, start_ns?: number | null, end_ns?: number | null, points: number}} wanted
   * @param {AbortSignal} [signal]
   * @returns {Promise<import("./messages.js").SeriesPayload>}
   */
  series: (run, { fields, ...rest }, signal) => call(`${runPath(run)}/series${query({ fields: fields.join(","), ...rest })}`, { signal }),
  /**
   * @param {string} run
   * @param {{fields: string[], rank: number, start?: number | null, end?: number | null, points?: number, life?: number}} wanted
   * @param {AbortSignal} [signal]
   * @returns {Promise<import("./messages.js").StepsPayload>}
   */
  steps: (run, { fields, ...rest }, signal) => call(`${runPath(run)}/steps${query({ fields: fields.join(","), ...rest })}`, { signal }),
  /** @param {string} run @returns {Promise<import("./messages.js").RunEvent[]>} */
  events: async (run) => (await call(`${runPath(run)}/events${query({ limit: 500, without: "phase" })}`)).events,
  /** @param {string} run @returns {Promise<{findings: import("./messages.js").Finding[], judged_ns?: number | null, looked_for?: string[]}>} */
  findings: (run) => call(`${runPath(run)}/findings`),
  /** @param {string} run @param {string} id @param {{reason: string, until: string}} mute @returns {Promise<import("./messages.js").Finding>} */
  muteFinding: (run, id, mute) => call(`${runPath(run)}/findings/${encodeURIComponent(id)}/mute`, { method: "POST", body: mute }),
  /** @param {string} run @param {string} id @returns {Promise<import("./messages.js").Finding>} */
  unmuteFinding: (run, id) => call(`${runPath(run)}/findings/${encodeURIComponent(id)}/mute`, { method: "DELETE" }),
  /** @param {string} run @returns {Promise<import("./oom/messages.js").OomRow[]>} */
  ooms: async (run) => (await call(`${runPath(run)}/ooms`)).ooms,
  /** @param {string} id @param {AbortSignal} [signal] @returns {Promise<import("./oom/messages.js").OomAnswer>} */
  oom: (id, signal) => call(`/api/v1/ooms/${encodeURIComponent(id)}`, { signal }),
  /** @param {string} run @param {number} rank @returns {Promise<import("./messages.js").RunEvent[]>} */
  phases: async (run, rank) => (await call(`${runPath(run)}/events${query({ limit: 2000, kind: "phase", rank })}`)).events,
  /** @param {string} run @param {AbortSignal} [signal] @returns {Promise<import("./messages.js").SnapshotInfo[]>} */
  snapshots: async (run, signal) => (await call(`${runPath(run)}/snapshots`, { signal })).snapshots,
  /** @param {string} id @param {AbortSignal} [signal] @returns {Promise<import("./messages.js").SnapshotInfo>} */
  snapshot: (id, signal) => call(snapshotPath(id), { signal }),
  /** @param {string} id */
  deleteSnapshot: (id) => call(snapshotPath(id), { method: "DELETE" }),
  /** @param {string} run @param {File} file @returns {Promise<import("./messages.js").SnapshotInfo>} */
  uploadSnapshot: (run, file) => call(`/api/v1/snapshots${query({ run, name: file.name })}`, { method: "POST", file }),
  /**
   * @param {string} id
   * @param {{by: string, start?: number | null, end?: number | null, points?: number, device?: number | null}} wanted
   * @param {AbortSignal} [signal]
   * @returns {Promise<import("./messages.js").RecordingTimeline>}
   */
  timeline: (id, wanted, signal) => call(`${snapshotPath(id)}/timeline${query(wanted)}`, { signal, deadline_ms: OPENING_MS }),
  /**
   * @param {string} id
   * @param {{at: string, fold: string, device?: number | null}} wanted
   * @param {AbortSignal} [signal]
   * @returns {Promise<import("./messages.js").MomentPayload>}
   */
  moment: (id, wanted, signal) => call(`${snapshotPath(id)}/moment${query(wanted)}`, { signal, deadline_ms: OPENING_MS }),
  /**
   * @param {{a: string, b: string, a_at: string, b_at: string, device?: number | null}} wanted
   * @param {AbortSignal} [signal]
   * @returns {Promise<import("./messages.js").GrowthPayload>}
   */
  growth: (wanted, signal) => call(`/api/v1/snapshots/growth${query(wanted)}`, { signal, deadline_ms: OPENING_MS }),
  /** @param {string} id */
  pickleAddress: (id) => `${snapshotPath(id)}/pickle`,
  /** @param {string} run @param {number} rank @returns {Promise<import("./messages.js").MapFrame>} */
  map: (run, rank) => call(`${runPath(run)}/map${query({ rank })}`),
  /** @param {string} run @param {AbortSignal} [signal] @returns {Promise<import("./batch-fit.js").BatchAnswer>} */
  batch: (run, signal) => call(`${runPath(run)}/batch`, { signal }),
  /** @param {string} run @param {number} batch_size as it was offered @returns {Promise<import("./batch-fit.js").ProbeState>} */
  probe: (run, batch_size) => call(`${runPath(run)}/batch/probe`, { method: "POST", body: { batch_size } }),
  /** @param {string} run @returns {Promise<import("./batch-fit.js").ProbeState>} */
  endProbe: (run) => call(`${runPath(run)}/batch/probe`, { method: "DELETE" }),
  /** @returns {Promise<{jobs: import("./messages.js").MachineJob[], taken_ns: number}>} */
  machineJobs: () => call("/api/v1/machine/jobs"),
  /** @param {string} run @returns {Promise<Command[]>} */
  commands: async (run) => (await call(`${runPath(run)}/commands`)).commands,
  /** @param {string} run @param {string} id @returns {Promise<Command>} */
  command: (run, id) => call(`${runPath(run)}/commands/${encodeURIComponent(id)}`),
  /** @param {string} run @param {CommandRequest} request @returns {Promise<{id: string, state: string}>} */
  sendCommand: (run, request) => call(`${runPath(run)}/commands`, { method: "POST", body: request }),
  /** @returns {Promise<{policies: import("./messages.js").Policy[], most: number}>} */
  policies: () => call("/api/v1/policies"),
  /** @param {import("./messages.js").PolicyBody} body @param {string | null} id of the one that it takes the place of @returns {Promise<import("./messages.js").Policy>} */
  savePolicy: (body, id) => (id === null ? call("/api/v1/policies", { method: "POST", body }) : call(policyPath(id), { method: "PUT", body })),
  /** @param {string} id @param {boolean} isOn @returns {Promise<import("./messages.js").Policy>} */
  switchPolicy: (id, isOn) => call(`${policyPath(id)}/${isOn ? "on" : "off"}`, { method: "POST" }),
  /** @param {string} id */
  deletePolicy: (id) => call(policyPath(id), { method: "DELETE" }),
  /** @param {string} id @param {number} [limit] @returns {Promise<import("./messages.js").PolicyFiring[]>} */
  firings: async (id, limit = 50) => (await call(`${policyPath(id)}/firings${query({ limit })}`)).firings,
  /** @param {AuditFilter & {before?: number | null, limit?: number}} wanted @param {AbortSignal} [signal] @returns {Promise<{audit: import("./messages.js").AuditRow[], next: number | null}>} */
  audit: (wanted, signal) => call(`/api/v1/audit${query(wanted)}`, { signal }),
  /** @param {AuditFilter} wanted @param {"csv" | "jsonl"} format */
  auditAddress: (wanted, format) => `/api/v1/audit${query({ ...wanted, format })}`,
};
