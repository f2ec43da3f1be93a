/**
 * Markdown of agents and files, safe: raw HTML is text, links go to http, https and mailto only, images of other
 * hosts are links (UI-17). Not here: code colours (`code.tsx`).
 */

import { ImageOff } from "lucide-react";
import { memo, useMemo, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { t } from "../text.ts";
import { splitBlocks } from "./blocks.ts";
import { Boundary } from "./boundary.tsx";
import { CodeBlock } from "./code.tsx";

const SAFE = /^(https?:|mailto:)/i;
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

/** Draw Markdown; while it grows only its last block is parsed again. */
export const Markdown = memo(function Markdown({ text, done = true }: { text: string; done?: boolean }) {
  const blocks = useMemo(() => splitBlocks(text), [text]);
  return (
    <div className="prose">
      {blocks.map((block, index) => (
        <Boundary key={index} of={block} instead={<pre>{block}</pre>}>
          <Block text={block} ready={done || index < blocks.length - 1} />
        </Boundary>
      ))}
    </div>
  );
});
