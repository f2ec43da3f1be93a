/** Characters that change how a text reads without being seen: they are shown, as "Trojan Source" wants. Pure. */

// Bidirectional controls, zero-width characters, soft hyphen, tags; not the joiners of emoji and scripts.
const UNSEEN = /[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]|\udb40[\udc00-\udc7f]/g;

/** Return the pieces of a text, those that nobody would see named as `U+202E`. */
export function withMarks(text: string): { text: string; mark: boolean }[] {
  const found: { text: string; mark: boolean }[] = [];
  let at = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (match.index > at) found.push({ text: text.slice(at, match.index), mark: false });
    const code = (match[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
    found.push({ text: `U+${code}`, mark: true });
    at = match.index + match[0].length;
  }
  if (at < text.length || found.length === 0) found.push({ text: text.slice(at), mark: false });
  return found;
}

/** Return a name with what nobody would see in it named: `rev‹U+202E›txt.exe` is no text file. */
export function seenName(name: string): string {
  return withMarks(name)
    .map((piece) => (piece.mark ? `‹${piece.text}›` : piece.text))
    .join("");
}
