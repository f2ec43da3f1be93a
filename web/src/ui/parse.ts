/**
 * Markdown to elements: the parser, put together once. A growing answer is parsed many times in a second, and what
 * `react-markdown` makes anew for each took longer than the parsing.
 *
 * Here: syntax, and which addresses and HTML get through. Not here: what elements look like (`prose.tsx`).
 */

import type { Element, Nodes, Root } from "hast";
import { toJsxRuntime, type Components } from "hast-util-to-jsx-runtime";
import type { Root as Text } from "mdast";
import type { ReactElement } from "react";
import { Fragment, jsx, jsxs } from "react/jsx-runtime";
import remarkGfm from "remark-gfm";
import remarkParse from "remark-parse";
import remarkRehype from "remark-rehype";
import { unified, type Plugin } from "unified";
import { remarkPlaces } from "./places.ts";

type MathPlugin = typeof import("remark-math").default;

// HTML is kept as such, to be shown as text (UI-17).
const AS_TEXT = { allowDangerousHtml: true };
const places = remarkPlaces as unknown as Plugin<[], Text>;
const made = (math: MathPlugin | null) =>
  (math ? unified().use(remarkParse).use(remarkGfm).use(math) : unified().use(remarkParse).use(remarkGfm)).use(places).use(remarkRehype, AS_TEXT).freeze();

let plain: ReturnType<typeof made> | null = null;
let withMath: ReturnType<typeof made> | null = null;

function processorOf(math: MathPlugin | null): ReturnType<typeof made> {
  if (math) return (withMath ??= made(math));
  return (plain ??= made(null));
}

/** HTML becomes text, addresses become what `safe` says of them. */
function disarm(node: Nodes, safe: (address: string) => string): void {
  if (!("children" in node)) return;
  for (const [at, child] of node.children.entries()) {
    if (child.type === "raw") node.children[at] = { type: "text", value: child.value };
    else if (child.type === "element") {
      clean(child, safe);
      disarm(child, safe);
    }
  }
}

function clean({ properties }: Element, safe: (address: string) => string): void {
  for (const name of ["href", "src"]) if (name in properties) properties[name] = safe(String(properties[name] ?? ""));
}

interface Manner {
  components: Partial<Components>;
  /** Return an address that may be followed, "" for any other. */
  safe: (address: string) => string;
  /** Reads formulas, once it is here. */
  math: MathPlugin | null;
}

/** Return a Markdown text as elements. */
export function elements(text: string, { components, safe, math }: Manner): ReactElement {
  const processor = processorOf(math);
  const root: Root = processor.runSync(processor.parse(text));
  disarm(root, safe);
  return toJsxRuntime(root, { Fragment, jsx, jsxs, components, ignoreInvalidStyle: true, passKeys: true }) as ReactElement;
}
