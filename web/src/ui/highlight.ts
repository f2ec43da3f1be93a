/** The highlighter and its languages: a chunk of its own. Not here: drawing. */

import { refractor } from "refractor";
import docker from "refractor/docker";
import jsx from "refractor/jsx";
import toml from "refractor/toml";
import tsx from "refractor/tsx";
import type { ColourNode } from "./code.tsx";

for (const language of [docker, jsx, toml, tsx]) refractor.register(language);

/** Return `text` as nodes with Prism's class names, null for an unknown language. */
export function highlight(text: string, language: string): readonly ColourNode[] | null {
  const name = language.toLowerCase();
  return refractor.registered(name) ? (refractor.highlight(text, name).children as unknown as ColourNode[]) : null;
}
