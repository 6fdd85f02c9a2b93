// Findings for tests, as the API sends them.

/** @returns {any} */
export const made = (/** @type {object} */ changes = {}) => ({ id: "one", run: "r", rank: 0, ranks: [0], kind: "leak", severity: "critical", confidence: 0.97, stage: "confirmed", state: "open", summary: "Leaking 3.1 MiB per step at train.py:56. Out of memory in 26 to 34 minutes.", detail: "Since step 310 every step keeps one loss.", subject: "train.py:56", since_step: 310, evidence: {}, culprits: [], remedies: [], opened_ns: 1e18, confirmed_ns: null, resolved_ns: null, muted: null, history: [], ...changes });
