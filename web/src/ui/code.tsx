/** Source text in colours; the highlighter is fetched when the first code is shown (UI-4). */

import { Check, Copy } from "lucide-react";
import { useEffect, useMemo, useState, type ReactNode } from "react";
import { t } from "../text.ts";
import { copyText } from "./browser.ts";

export interface ColourNode {
  type: string;
  value?: string;
  properties?: { className?: readonly string[] };
  children?: readonly ColourNode[];
}

const MOST_COLOURED = 60_000;

function draw(nodes: readonly ColourNode[]): ReactNode {
  return nodes.map((node, index) =>
    node.type === "text" ? (
      node.value
    ) : (
      <span key={index} className={node.properties?.className?.join(" ")}>
        {draw(node.children ?? [])}
      </span>
    ),
  );
}

type Highlight = (text: string, language: string) => readonly ColourNode[] | null;

let highlighter: Highlight | null = null;

/** Return source as coloured elements once the highlighter is here; plain text until then. */
export function useColours(text: string, language: string | null, ready = true): ReactNode {
  const wanted = ready && text.length <= MOST_COLOURED ? language : null;
  const [highlight, setHighlight] = useState(() => highlighter);
  useEffect(() => {
    if (!wanted || highlight) return;
    let here = true;
    import("./highlight.ts").then(
      (loaded) => {
        highlighter = loaded.highlight;
        if (here) setHighlight(() => loaded.highlight);
      },
      () => undefined, // offline: it stays plain
    );
    return () => {
      here = false;
    };
  }, [wanted, highlight]);
  return useMemo(() => {
    const nodes = wanted && highlight ? highlight(text, wanted) : null;
    return nodes && nodes.length > 0 ? draw(nodes) : text;
  }, [text, wanted, highlight]);
}

interface CodeBlockProps {
  text: string;
  language: string | null;
  /** False while the block is still being written. */
  ready?: boolean;
}

export function CodeBlock({ text, language, ready = true }: CodeBlockProps) {
  const coloured = useColours(text, language, ready);
  return (
    <div className="code-block">
      <div className="code-head">
        <span>{language ?? t.plainText}</span>
        <CopyButton text={text} />
      </div>
      <pre tabIndex={0} aria-label={t.codeBlock(language)}>
        <code>{coloured}</code>
      </pre>
    </div>
  );
}

export function CopyButton({ text, label = t.copy }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), 1600);
    return () => clearTimeout(timer);
  }, [done]);
  const Icon = done ? Check : Copy;
  return (
    <button
      type="button"
      className="button plain small"
      onClick={() => void copyText(text).then(() => setDone(true))}
    >
      <Icon size={14} aria-hidden="true" />
      {done ? t.copied : label}
    </button>
  );
}
