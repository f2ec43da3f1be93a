/** What goes to the server as JSON. Not here: how it is sent, what it means. */

/**
 * A value as JSON that every reader takes. Half a character, as a cut through an emoji leaves it, is none that UTF-8
 * has: `JSON.stringify` writes it as `\ud83d`, which the server refuses with all that stands around it.
 */
export function asJson(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (typeof member === "string" ? member.replace(/\p{Cs}/gu, "\ufffd") : member));
}
