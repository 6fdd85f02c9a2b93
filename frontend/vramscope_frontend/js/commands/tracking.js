// From sending a command to its end. The live feed brings the news; a slow poll covers a feed that
// is cut in between, and a deadline covers both.

import { api } from "../api.js";
import { mergeCommands } from "../data/run-session.js";

/** @typedef {import("../messages.js").Command} Command */
/** @typedef {import("../messages.js").CommandRequest} CommandRequest */

const FINAL = new Set(["done", "failed", "refused", "expired"]);
const POLL_MS = 1500;
const GRACE_S = 15;
export const DEADLINE_S = 30;

/**
 * @param {import("../data/run-session.js").RunSession} session
 * @param {Omit<CommandRequest, "deadline_s">} request
 * @param {(command: Command) => void} onProgress
 * @param {AbortSignal} signal
 * @returns {Promise<Command>} in a final state
 */
export async function runCommand(session, request, onProgress, signal) {
  const { id } = await api.sendCommand(session.id, { ...request, deadline_s: DEADLINE_S });
  return new Promise((resolve, reject) => {
    const find = () => session.store.state.commands.find((command) => command.id === id);
    const look = () => {
      const command = find();
      if (!command) return;
      onProgress(command);
      // What goes on over steps tells that it does: the wait begins anew.
      const told = JSON.stringify(command.receipts);
      if (told !== heard) expectNews();
      heard = told;
      if (FINAL.has(command.state)) finish(() => resolve(command));
    };
    const poll = async () => {
      try {
        const command = await api.command(session.id, id);
        session.store.set({ commands: mergeCommands(session.store.state.commands, [command]) });
      } catch {
        // The feed or the next poll may still bring it; the deadline ends the wait otherwise.
      }
      look();
    };
    const unsubscribe = session.store.subscribe((_, changed) => changed.includes("commands") && look());
    const polling = setInterval(() => void poll(), POLL_MS);
    let heard = "";
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let deadline;
    const expectNews = () => {
      clearTimeout(deadline);
      deadline = setTimeout(() => finish(() => reject(new Error(`No answer within ${DEADLINE_S + GRACE_S} s; the command may still run. Its receipt will be listed under Commands.`))), (DEADLINE_S + GRACE_S) * 1000);
    };
    const finish = (/** @type {() => void} */ settle) => {
      unsubscribe();
      clearInterval(polling);
      clearTimeout(deadline);
      settle();
    };
    expectNews();
    signal.addEventListener("abort", () => finish(() => reject(new DOMException("closed", "AbortError"))));
    look();
  });
}
