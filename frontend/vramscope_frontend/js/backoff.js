// Reconnect delays: doubling to a ceiling, spread by jitter so that many pages do not return at once.

const FIRST_DELAY_S = 0.5;
const LONGEST_DELAY_S = 15;

/**
 * Delay before attempt `attempt` (1 for the first after a loss).
 * @param {number} attempt
 * @param {number} random in [0, 1)
 */
export function reconnectDelay(attempt, random) {
  const ceiling_s = Math.min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** (attempt - 1));
  // At least half of the ceiling: a delay near zero would be no back-off at all.
  return ceiling_s * (0.5 + 0.5 * random);
}

/**
 * Close codes after which the same call would meet the same answer (protocol errors.py, PERMANENT).
 * @param {number} code
 */
export function isPermanent(code) {
  return code === 4401 || code === 4402 || code === 4403 || code === 4426 || code === 4430;
}
