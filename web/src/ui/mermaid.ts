/** Diagrams: their text to a picture. A chunk of its own, fetched when the first one is shown. */

import mermaid from "mermaid";

/** What a text may not change by its own directives: where code could hide, and how much is drawn. */
const FIXED = ["secure", "securityLevel", "startOnLoad", "maxTextSize", "maxEdges", "suppressErrorRendering", "themeCSS", "themeVariables", "fontFamily", "htmlLabels", "dompurifyConfig"];
const DIRECTIVE = /%%\{[\s\S]*?\}%%/g;
const MATTER = /^\s*---\r?\n[\s\S]*?\r?\n---[ \t]*(\r?\n|$)/;

/** The beginning of an HTML tag: the library hands labels to the page's parser; line breaks and stereotypes are its own. */
const TAG = /<<[\w -]+>>|<(?!br\s*\/?>)(?=[a-z/!?])/gi;

export interface Picture {
  svg: string;
  width: number;
}

let number = 0;
let last: Promise<unknown> = Promise.resolve();

/**
 * Return a diagram as SVG, one after the other: the library has one set of settings for all.
 *
 * @throws Error when the text is no diagram.
 */
export function picture(text: string, dark: boolean): Promise<Picture> {
  const made = last.then(() => make(text, dark));
  last = made.catch(() => undefined);
  return made;
}

async function make(text: string, dark: boolean): Promise<Picture> {
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    suppressErrorRendering: true,
    theme: dark ? "dark" : "neutral",
    fontFamily: "system-ui, sans-serif", // a picture has no fonts of the page
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    maxTextSize: 20_000,
    maxEdges: 300,
    secure: FIXED,
  });
  const place = document.createElement("div");
  place.className = "measuring";
  place.setAttribute("aria-hidden", "true");
  document.body.append(place);
  try {
    number += 1;
    const { svg } = await mermaid.render(`diagram-${number}`, text.replace(MATTER, "").replace(DIRECTIVE, "").replace(TAG, (found) => (found.startsWith("<<") ? found : "‹")), place);
    return { svg: asFile(svg), width: widthOf(svg) };
  } finally {
    place.remove();
  }
}

/** As a file of its own the picture must be well-formed, which what a page holds need not be. */
function asFile(svg: string): string {
  const parsed = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
  if (!parsed) throw new Error("there is no picture");
  const width = widthOf(svg);
  parsed.setAttribute("width", String(width));
  parsed.removeAttribute("height");
  return new XMLSerializer().serializeToString(parsed);
}

function widthOf(svg: string): number {
  const width = Number(/viewBox="[-\d.]+ [-\d.]+ ([\d.]+)/.exec(svg)?.[1]);
  return Number.isFinite(width) && width > 0 ? Math.ceil(width) : 600;
}
