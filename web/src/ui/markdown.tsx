/**
 * Markdown of agents and files, safe: raw HTML is text, links go to http, https and mailto only, images of other
 * hosts are links (UI-17). Not here: code colours (`code.tsx`).
 */

import { ImageOff } from "lucide-react";
import { memo, useMemo, useRef, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { t } from "../text.ts";
import { grownBlocks, type Blocks } from "./blocks.ts";
import { Boundary } from "./boundary.tsx";
import { CodeBlock } from "./code.tsx";

const SAFE = /^(https?:|mailto:)/i;
const DEFINITION = /^ {0,3}\[\^?[^\]\n]+\]:/m;
const plugins = [remarkGfm];

/** Return the host of an address, null when it is no address that a browser can read. */
function hostOf(address: string): string | null {
  try {
    return new URL(address).host;
  } catch {
    return null; // "http://" and "https://[" look like addresses and are none
  }
}

/** Return an address that may be followed, "" for any other. */
export function safeAddress(address: string): string {
  return SAFE.test(address.trim()) && hostOf(address) !== null ? address : "";
}

function textOf(node: ReactNode): string {
  if (typeof node === "string" || typeof node === "number") return String(node);
  if (Array.isArray(node)) return node.map(textOf).join("");
  return "";
}

const components: Components = {
  p: ({ children }) => <p dir="auto">{children}</p>,
  li: ({ children, className }) => (
    <li dir="auto" className={className}>
      {children}
    </li>
  ),
  a: ({ href, children }) =>
    href ? (
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        {children}
      </a>
    ) : (
      <span>{children}</span>
    ),
  img: ({ src, alt }) => {
    const address = typeof src === "string" ? safeAddress(src) : "";
    return address ? (
      <a href={address} target="_blank" rel="noopener noreferrer nofollow">
        <ImageOff size={14} aria-hidden="true" /> {alt || t.image} ({hostOf(address)})
      </a>
    ) : (
      <span className="muted">[{alt || t.image}]</span>
    );
  },
  table: ({ children }) => (
    <div className="table-scroll" tabIndex={0} role="region" aria-label={t.table}>
      <table>{children}</table>
    </div>
  ),
  input: ({ checked }) => <input type="checkbox" checked={checked === true} readOnly disabled aria-label={t.task} />,
};

function withCode(ready: boolean): Components {
  return {
    ...components,
    pre: ({ children }) => {
      const child = children as { props?: { className?: string; children?: ReactNode } } | null;
      const language = /language-([\w+#.-]+)/.exec(child?.props?.className ?? "")?.[1] ?? null;
      return <CodeBlock text={textOf(child?.props?.children).replace(/\n$/, "")} language={language} ready={ready} />;
    },
  };
}

const finished = withCode(true);
const growing = withCode(false);

const Block = memo(function Block({ text, ready }: { text: string; ready: boolean }) {
  return (
    <ReactMarkdown remarkPlugins={plugins} components={ready ? finished : growing} urlTransform={safeAddress}>
      {text}
    </ReactMarkdown>
  );
});

function Drawn({ block, ready }: { block: string; ready: boolean }) {
  return (
    <Boundary of={block} instead={<pre>{block}</pre>}>
      <Block text={block} ready={ready} />
    </Boundary>
  );
}

const GROUP = 16;

/** Some finished blocks: one thing to compare for a long text that grows, not hundreds. */
const Group = memo(
  function Group({ blocks }: { blocks: readonly string[] }) {
    return blocks.map((block, at) => <Drawn key={at} block={block} ready />);
  },
  (before, after) => before.blocks.length === after.blocks.length && before.blocks.every((block, at) => block === after.blocks[at]),
);

/** Draw Markdown; while it grows only its last block is parsed again. */
export const Markdown = memo(function Markdown({ text, done = true }: { text: string; done?: boolean }) {
  const grown = useRef<Blocks | null>(null);
  // Footnotes and references by name stand in other blocks than what names them.
  const blocks = useMemo(() => {
    if (done && DEFINITION.test(text)) return [text];
    grown.current = grownBlocks(grown.current, text);
    return grown.current.blocks;
  }, [text, done]);
  const groups: ReactNode[] = [];
  const whole = blocks.length - 1 - ((blocks.length - 1) % GROUP);
  for (let at = 0; at < whole; at += GROUP) groups.push(<Group key={at} blocks={blocks.slice(at, at + GROUP)} />);
  return (
    <div className="prose">
      {groups}
      {blocks.slice(whole).map((block, index) => (
        <Drawn key={whole + index} block={block} ready={done || whole + index < blocks.length - 1} />
      ))}
    </div>
  );
});
