/**
 * What elements of Markdown become: safe links, images as links, tables that scroll, code, formulas, diagrams
 * (UI-17, UI-92). Not here: which text is drawn when (`markdown.tsx`).
 */

import { ImageOff } from "lucide-react";
import type { ReactNode } from "react";
import type { Components } from "hast-util-to-jsx-runtime";
import { t } from "../text.ts";
import { CodeBlock } from "./code.tsx";
import { Diagram } from "./diagram.tsx";
import { FileLink } from "./file_link.tsx";
import { Formula } from "./formula.tsx";
import { placeOf } from "./places.ts";

const SAFE = /^(https?:|mailto:)/i;
const NOTE = /^#user-content-fn/;

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
  if (NOTE.test(address) || placeOf(address)) return address;
  return SAFE.test(address.trim()) && hostOf(address) !== null ? address : "";
}

function textOf(node: ReactNode): string {
  if (typeof node === "string" || typeof node === "number") return String(node);
  if (Array.isArray(node)) return node.map(textOf).join("");
  return "";
}

/** A footnote and the way back: within this text, for other texts have footnotes of the same names. */
function NoteLink({ href, label, children }: { href: string; label: string | undefined; children: ReactNode }) {
  return (
    <a
      href={href}
      aria-label={label}
      onClick={(event) => {
        event.preventDefault();
        const target = event.currentTarget.closest(".prose")?.querySelector(`[id="${CSS.escape(href.slice(1))}"]`);
        target?.scrollIntoView({ block: "center" });
        (target?.querySelector("a[href]") as HTMLElement | null | undefined)?.focus({ preventScroll: true });
      }}
    >
      {children}
    </a>
  );
}

const shared: Components = {
  p: ({ children }) => <p dir="auto">{children}</p>,
  h1: ({ children }) => <h1 dir="auto">{children}</h1>,
  h2: ({ children, id }) => (
    <h2 dir="auto" className={id === "footnote-label" ? "hidden" : undefined}>
      {children}
    </h2>
  ),
  h3: ({ children }) => <h3 dir="auto">{children}</h3>,
  h4: ({ children }) => <h4 dir="auto">{children}</h4>,
  td: ({ children, style }) => (
    <td dir="auto" style={style}>
      {children}
    </td>
  ),
  th: ({ children, style }) => (
    <th dir="auto" style={style}>
      {children}
    </th>
  ),
  li: ({ children, className, id }) => (
    <li dir="auto" className={className} id={id}>
      {children}
    </li>
  ),
  a: ({ href, children, "aria-label": label }) => {
    const place = href ? placeOf(href) : null;
    if (place) return <FileLink place={place}>{children}</FileLink>;
    if (href && NOTE.test(href)) return <NoteLink href={href} label={label}>{children}</NoteLink>;
    if (!href) return <span>{children}</span>;
    return (
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        {children}
      </a>
    );
  },
  img: ({ src, alt }) => {
    const address = typeof src === "string" && SAFE.test(src) ? safeAddress(src) : "";
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
  code: ({ children, className }) => (className?.includes("math-inline") ? <Formula tex={textOf(children)} /> : <code className={className}>{children}</code>),
};

function withCode(ready: boolean): Components {
  return {
    ...shared,
    pre: ({ children }) => {
      const child = children as { props?: { className?: string; children?: ReactNode } } | null;
      const language = /language-([\w+#.-]+)/.exec(child?.props?.className ?? "")?.[1] ?? null;
      const text = textOf(child?.props?.children).replace(/\n$/, "");
      if (language === "math" && ready) return <Formula tex={text} display />;
      if (language === "mermaid" && ready) return <Diagram text={text} />;
      return <CodeBlock text={text} language={language} ready={ready} />;
    },
  };
}

/** For text that stays, and for text that grows: what is half written has no colours and is no diagram yet. */
export const finished = withCode(true);
export const growing = withCode(false);
