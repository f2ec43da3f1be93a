/** Characters that change how a text reads without being seen: they are shown, as "Trojan Source" wants. Pure. */

import { t } from "../text.ts";

// Bidirectional controls, zero-width characters, soft hyphen, tags; not the joiners of emoji and scripts.
const UNSEEN = /[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]|\udb40[\udc00-\udc7f]/g;

/** Return the pieces of a text, those that nobody would see named as `U+202E`. */
export function withMarks(text: string): { text: string; mark: boolean }[] {
  const found: { text: string; mark: boolean }[] = [];
  let at = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (match.index > at) found.push({ text: text.slice(at, match.index), mark: false });
    found.push({ text: codeOf(match[0]), mark: true });
    at = match.index + match[0].length;
  }
  if (at < text.length || found.length === 0) found.push({ text: text.slice(at), mark: false });
  return found;
}

// In a name, lines, tabs and other spaces are nothing that is seen, nor is a space at an end of it.
const IN_NAMES = /[\u0000-\u001f\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]|(?<=^|\/) +| +(?=\/|$)/g;

/** Return a text with what nobody would see in it named: the command that is allowed is the one that is read. */
export function seenText(text: string): string {
  return withMarks(text)
    .map((piece) => (piece.mark ? `‹${piece.text}›` : piece.text))
    .join("");
}

/** Return a name with what nobody would see in it named: `rev‹U+202E›txt.exe` is no text file. */
export function seenName(name: string): string {
  return seenText(name).replace(IN_NAMES, (found) => [...found].map((one) => `‹${codeOf(one)}›`).join(""));
}

/** Return what a session is called: a title of spaces is none, and one that turns its letters around says so. */
export function seenTitle(title: string | null | undefined): string {
  return seenText(title ?? "").trim() || t.untitled;
}

function codeOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
