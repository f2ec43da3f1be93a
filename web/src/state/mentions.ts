/**
 * `@path` in a message: what is typed of one, and what goes along with what is sent (UI-73). Pure.
 *
 * A file goes along with its text where that is small; a larger one, a binary one and a directory go along as what
 * they are. The terminal does the same. Not here: which names there are (`names.ts`), reading files.
 */

import { size } from "./words.ts";

const SMALL = 16_000;
const TOGETHER = 64_000;
const MOST = 20;
const MOST_LISTED = 100;
const MENTION = /(?<!\S)@(?:"([^"\n]+)"|([^\s"]+))/g;
const TYPED = /(?<!\S)@(?:"([^"\n]*)|([^\s"]*))$/;
const AFTER = /[.,;:!?)\]}']+$/;

export type Found =
  | { kind: "file"; path: string; size: number; content: string | null }
  | { kind: "directory"; path: string; files: readonly string[] };

/** Return what is typed of a name at the end of a text, and how much of the text that is; null where none is. */
export function typedMention(before: string): { typed: string; length: number } | null {
  const found = TYPED.exec(before);
  return found ? { typed: found[1] ?? found[2] ?? "", length: found[0].length } : null;
}

/** Return what is typed for a name. */
export function mentionOf(name: string): string {
  return /\s/.test(name) ? `@"${name}"` : `@${name}`;
}

/** Return a text with a picked name in place of what is typed of it up to `caret`, and where the caret is then. */
export function withMention(text: string, caret: number, name: string): { text: string; at: number } {
  const typed = typedMention(text.slice(0, caret));
  const begin = caret - (typed?.length ?? 0);
  // A directory may go on to what is in it.
  const put = name.endsWith("/") && !/\s/.test(name) ? mentionOf(name) : `${mentionOf(name)} `;
  const rest = text.slice(caret).replace(/^[^\s]*/, (word) => (/^[\w./-]/.test(word) ? "" : word));
  return { text: text.slice(0, begin) + put + rest, at: begin + put.length };
}

/** Return the names in a text, each once, in their order. */
export function mentioned(text: string): string[] {
  return [...new Set([...text.matchAll(MENTION)].map((found) => found[1] ?? found[2] ?? ""))].slice(0, MOST);
}

/** Return the message with what it names; a word after an @ that names nothing is left as it is. */
export async function attachedText(text: string, look: (path: string) => Promise<Found | null>): Promise<string> {
  const parts: string[] = [];
  let room = TOGETHER;
  for (const word of mentioned(text)) {
    const found = await firstOf(word, look);
    if (!found) continue;
    const part = partOf(found, room);
    room -= part.length;
    parts.push(part);
  }
  return [text, ...parts].join("\n\n");
}

async function firstOf(word: string, look: (path: string) => Promise<Found | null>): Promise<Found | null> {
  const trimmed = (path: string): string => path.replace(/^\/+|\/+$/g, "");
  for (const path of new Set([trimmed(word), trimmed(word.replace(AFTER, ""))])) {
    const found = path ? await look(path) : null;
    if (found) return found;
  }
  return null;
}

function partOf(found: Found, room: number): string {
  const name = found.path.replaceAll('"', "&quot;");
  if (found.kind === "directory") {
    const { files } = found;
    const more = files.length > MOST_LISTED ? `\n… ${files.length - MOST_LISTED} more` : "";
    const count = files.length === 1 ? "1 file" : `${files.length} files`;
    return `<attachment path="${name}">\nA directory, ${count}:\n${files.slice(0, MOST_LISTED).join("\n")}${more}\n</attachment>`;
  }
  const { content } = found;
  if (content === null || content.length > Math.min(SMALL, room)) {
    const what = content === null ? "a binary file" : "a file that is too large to go along";
    return `<attachment path="${name}">\n[${what}, ${size(found.size)}]\n</attachment>`;
  }
  return `<attachment path="${name}">\n${content.endsWith("\n") ? content : `${content}\n`}</attachment>`;
}

/** Return what a person wrote, and the names of what went along with it. */
export function withoutAttachments(message: string): { words: string; names: readonly string[] } {
  const at = message.search(/(^|\n\n)<attachment path="[^"\n]*">\n/);
  if (at < 0 || !message.endsWith("</attachment>")) return { words: message, names: [] };
  const names = [...message.slice(at).matchAll(/^<attachment path="([^"\n]*)">$/gm)].map((found) => (found[1] ?? "").replaceAll("&quot;", '"'));
  return { words: message.slice(0, at), names };
}
