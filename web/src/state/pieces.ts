/**
 * A text put together from pieces that say where they begin: cut, repeated, late and early ones give the same. Pure.
 *
 * Places are counted in characters (code points), as the server counts them; a string of JavaScript counts otherwise.
 */

export interface Pieces {
  text: string;
  /** Characters that are there, without a gap, from the beginning. */
  length: number;
  /** Pieces whose beginning is not reached yet, by their place. */
  early: ReadonlyMap<number, string>;
}

export const NOTHING: Pieces = { text: "", length: 0, early: new Map() };

/** Return the text with a piece in its place, of which `offset` characters come before. */
export function take(before: Pieces, content: string, offset: number): Pieces {
  if (offset > before.length) {
    if (content.length <= (before.early.get(offset)?.length ?? 0)) return before;
    return { ...before, early: new Map(before.early).set(offset, content) };
  }
  let found = add(before, content, offset);
  if (found.early.size === 0) return found;
  const early = new Map(found.early);
  for (const at of [...early.keys()].sort((a, b) => a - b)) {
    if (at > found.length) break;
    found = add(found, early.get(at) ?? "", at);
    early.delete(at);
  }
  return { ...found, early };
}

function add(before: Pieces, content: string, offset: number): Pieces {
  const known = before.length - offset;
  const fresh = known === 0 ? content : [...content].slice(known).join("");
  return fresh ? { ...before, text: before.text + fresh, length: before.length + characters(fresh) } : before;
}

function characters(text: string): number {
  return /[\ud800-\udfff]/.test(text) ? [...text].length : text.length;
}
