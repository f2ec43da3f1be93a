/** A page beside conversations: head, loading, what went wrong, content. */

import { ArrowLeft } from "lucide-react";
import { useLayoutEffect, useRef, type ReactNode } from "react";
import { Link } from "wouter";
import { t } from "../text.ts";
import { Loading, Problem } from "../ui/kit.tsx";
import { useLeft } from "../ui/left.ts";
import { SidebarButton } from "./shell.tsx";

interface PageProps {
  title: string;
  /** One sentence on what is here. */
  about?: string;
  problem: string | null;
  ready: boolean;
  /** Where the arrow before the title leads, and its name. */
  back?: { href: string; label: string };
  actions?: ReactNode;
  wide?: boolean;
  children: ReactNode;
}

export function Page({ title, about, problem, ready, back, actions, wide, children }: PageProps) {
  const place = useRef<HTMLDivElement>(null);
  const [left, keepAs] = useLeft<number>("scroll");
  keepAs(() => place.current?.scrollTop ?? null);
  useLayoutEffect(() => {
    if (ready && left && place.current) place.current.scrollTop = left;
  }, [ready, left]);
  return (
    <>
      <header className="head">
        <SidebarButton />
        {back && (
          <Link className="button icon plain" href={back.href} aria-label={back.label} title={back.label}>
            <ArrowLeft size={18} aria-hidden="true" />
          </Link>
        )}
        <div className="head-title">
          <h1 className="clip">{title}</h1>
        </div>
        {actions}
      </header>
      <div ref={place} className="page" tabIndex={0}>
        <div className={`page-inner ${wide ? "wide" : ""}`}>
          {about && <p className="muted about">{about}</p>}
          {problem && <Problem>{problem}</Problem>}
          {!ready && !problem && <Loading label={t.loading} />}
          {children}
        </div>
      </div>
    </>
  );
}
