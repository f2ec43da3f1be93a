/**
 * Places in files that a Markdown text names, as links: `src/app.js:3`, and links to files of the branch. Pure.
 *
 * Not here: what following one does (`file_link.tsx`).
 */

import { languageOf } from "../state/hunks.ts";

export interface FilePlace {
  path: string;
  line: number | null;
}

const HEAD = "#file:";
const PLACE = /(?<![\w/.:@+\\-])((?:\.{0,2}\/)?(?:[\w.@+-]+\/)*[\w.@+-]+):(\d{1,7})(?:[-:]\d{1,7})?(?![\w/:])/g;
const OTHER_TEXT = /\.(txt|md|rst|log|csv|tsv|ini|cfg|conf|lock|env|svg)$/i;
const SCHEME = /^[a-z][a-z\d+.-]*:/i;

/** Return the address of a place in a file. */
export function placeAddress({ path, line }: FilePlace): string {
  return `${HEAD}${encodeURIComponent(path)}${line === null ? "" : `:${line}`}`;
}

/** Return the place that an address is of, null for any other address. */
export function placeOf(address: string): FilePlace | null {
  const found = /^#file:([^:]+)(?::(\d+))?$/.exec(address);
  if (!found) return null;
  try {
    return { path: decodeURIComponent(found[1] ?? ""), line: found[2] ? Number(found[2]) : null };
  } catch {
    return null; // a broken escape
  }
}

/** Whether words before a colon and a number are a file, not a host or a time. */
function isFile(path: string): boolean {
  const name = path.split("/").pop() ?? "";
  if (/^(Make|Docker)file$/i.test(name)) return true;
  return path.includes("/") ? /\.[a-z]\w{0,9}$/i.test(name) : languageOf(name) !== null || OTHER_TEXT.test(name);
}

/** Return a path of the branch, from its root, null when it leads out of it. */
function rooted(path: string): string | null {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") {
      if (parts.pop() === undefined) return null;
    } else if (part && part !== ".") parts.push(part);
  }
  return parts.length > 0 ? `/${parts.join("/")}` : null;
}

/** Return the file that a link leads to: one of the branch, with `:3` or `#L3` for a line; null for other links. */
export function linkedFile(address: string): FilePlace | null {
  const [, whole = "", line] = /^(.*?)(?::(\d+)|#L(\d+))?(?:[-:]L?\d+)?$/.exec(address) ?? [];
  if (!whole || /^[#/]{2}|^#|[\\?]|^\/\//.test(whole) || SCHEME.test(whole)) return null;
  try {
    const path = rooted(decodeURIComponent(whole.replace(/#.*$/, "")));
    return path === null ? null : { path, line: Number(line ?? /#L(\d+)/.exec(address)?.[1]) || null };
  } catch {
    return null; // a broken escape
  }
}

interface Node {
  type: string;
  value?: string;
  url?: string;
  children?: Node[];
}

/** Return a text in pieces: words, and links to the places between them. */
function pieces(node: Node): Node[] {
  const out: Node[] = [];
  const text = node.value ?? "";
  let end = 0;
  for (const found of text.matchAll(PLACE)) {
    const path = isFile(found[1] ?? "") ? rooted(found[1] ?? "") : null;
    if (path === null || (node.type === "inlineCode" && found[0].length !== text.trim().length)) continue;
    if (node.type === "inlineCode") return [{ type: "link", url: placeAddress({ path, line: Number(found[2]) }), children: [node] }];
    if (found.index > end) out.push({ type: "text", value: text.slice(end, found.index) });
    out.push({ type: "link", url: placeAddress({ path, line: Number(found[2]) }), children: [{ type: "text", value: found[0] }] });
    end = found.index + found[0].length;
  }
  if (out.length === 0) return [node];
  return end < text.length ? [...out, { type: "text", value: text.slice(end) }] : out;
}

/** A plugin of remark: places become links. */
export function remarkPlaces(): (tree: Node) => void {
  const walk = (node: Node): void => {
    if (!node.children) return;
    node.children = node.children.flatMap((child) => {
      if (child.type === "text" || child.type === "inlineCode") return pieces(child);
      if (child.type === "link" || child.type === "linkReference" || child.type === "definition") {
        const place = child.url === undefined ? null : linkedFile(child.url);
        if (place) child.url = placeAddress(place);
      } else walk(child);
      return [child];
    });
  };
  return walk;
}
