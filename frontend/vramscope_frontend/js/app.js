// What every view may use, handed to it instead of imported as globals.

/**
 * @typedef {object} App
 * @property {import("./connection.js").Connection} connection
 * @property {import("./clock.js").ServerClock} clock
 * @property {import("./router.js").Router} router
 * @property {import("./views/shell.js").Shell} shell
 * @property {import("./socket.js").Link} link
 * @property {string[]} scopes
 * @property {import("./messages.js").Session | null} session
 */

export {};
