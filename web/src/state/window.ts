/** Which part of a long list is on the screen. Pure: heights in, rows to draw out. */

export interface Section {
  key: string;
  /** Height of what always stands above the rows. */
  head: number;
  rows: readonly { key: string; estimate: number }[];
}

/** A section of which at least something is seen: rows `from` … `to` (not with it), and what is left out around. */
export interface Seen {
  index: number;
  from: number;
  to: number;
  before: number;
  after: number;
}

export interface Window {
  sections: readonly Seen[];
  before: number;
  after: number;
}

export type Heights = ReadonlyMap<string, number>;

export const rowKey = (section: string, row: string): string => `${section}\n${row}`;

function heightOf(heights: Heights, section: Section, row: { key: string; estimate: number }): number {
  return heights.get(rowKey(section.key, row.key)) ?? row.estimate;
}

/** Return what is seen between `top` and `bottom`, pixels from the list's beginning. */
export function windowOf(sections: readonly Section[], heights: Heights, top: number, bottom: number): Window {
  const seen: Seen[] = [];
  let at = 0;
  let before = 0;
  let after = 0;
  for (const [index, section] of sections.entries()) {
    const start = at;
    at += heights.get(rowKey(section.key, "")) ?? section.head;
    let from = -1;
    let to = 0;
    let skipped = 0;
    let rest = 0;
    for (const [number, row] of section.rows.entries()) {
      const height = heightOf(heights, section, row);
      if (at + height > top && at < bottom) {
        if (from < 0) from = number;
        to = number + 1;
      } else if (from < 0) skipped += height;
      else rest += height;
      at += height;
    }
    if (at <= top) before += at - start;
    else if (start >= bottom) after += at - start;
    else if (from < 0) seen.push({ index, from: 0, to: 0, before: skipped, after: 0 });
    else seen.push({ index, from, to, before: skipped, after: rest });
  }
  return { sections: seen, before, after };
}

/** Return where a section, or one of its rows, begins. */
export function placeOf(sections: readonly Section[], heights: Heights, key: string, row: string | null): number | null {
  let at = 0;
  for (const section of sections) {
    if (section.key === key && row === null) return at;
    at += heights.get(rowKey(section.key, "")) ?? section.head;
    for (const one of section.rows) {
      if (section.key === key && one.key === row) return at;
      at += heightOf(heights, section, one);
    }
    if (section.key === key) return null;
  }
  return null;
}

/** A row, null for a section's head, and how far it has gone above the edge. */
export interface At {
  section: string;
  row: string | null;
  above: number;
}

/** Return what stands at `top`, null where there is nothing. */
export function rowAt(sections: readonly Section[], heights: Heights, top: number): At | null {
  let at = 0;
  for (const section of sections) {
    const head = heights.get(rowKey(section.key, "")) ?? section.head;
    if (at + head > top) return { section: section.key, row: null, above: top - at };
    at += head;
    for (const row of section.rows) {
      const height = heightOf(heights, section, row);
      if (at + height > top) return { section: section.key, row: row.key, above: top - at };
      at += height;
    }
  }
  return null;
}
