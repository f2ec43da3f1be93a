/** The sandbox this server has, and why not a better one (UI-35, SV-30). */

import { useEffect, useState, type ReactNode } from "react";
import { api } from "../api/client.ts";
import type { Sandbox } from "../api/types.ts";
import { Page } from "../app/page.tsx";
import { t } from "../text.ts";

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** `rlimit+watch` → words. */
function limitInWords(kinds: string): string {
  return kinds.split("+").map((kind) => t.limitKinds[kind] ?? kind).join("; ");
}

export default function SandboxPage() {
  const [sandbox, setSandbox] = useState<Sandbox | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    api.sandbox().then(setSandbox, (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  }, []);
  const reasons = Object.entries(sandbox?.reasons ?? {}).filter((pair): pair is [string, string] => Boolean(pair[1]));
  const limits = Object.entries(sandbox?.limits ?? {});
  return (
    <Page title={t.sandbox} about={t.sandboxAbout} problem={problem} ready={sandbox !== null}>
      {sandbox && (
        <section className="card pad">
          <h2 className="section-title">
            {t.tiers[sandbox.tier] ?? sandbox.tier}
            <span className={`badge ${sandbox.tier === "overlay" ? "ok" : sandbox.tier === "none" ? "danger" : "warn"}`}>{sandbox.tier}</span>
          </h2>
          <dl className="facts wide">
            <Fact name={t.minimum}>{t.tiers[sandbox.minimum] ?? sandbox.minimum}</Fact>
            <Fact name={t.isolation}>{sandbox.isolation.map((name) => t.isolations[name] ?? name).join(", ") || "–"}</Fact>
            <Fact name={t.network}>
              {t.networks[sandbox.network] ?? sandbox.network}
              {sandbox.network_reason && <span className="muted"> – {sandbox.network_reason}</span>}
            </Fact>
            {limits.map(([name, value]) => (
              <Fact key={name} name={t.limitNames[name] ?? name}>
                {limitInWords(String(value))}
              </Fact>
            ))}
          </dl>
        </section>
      )}
      {reasons.length > 0 && (
        <section>
          <h2 className="section-title">{t.reasons}</h2>
          <dl className="facts wide card pad">
            {reasons.map(([name, reason]) => (
              <Fact key={name} name={name}>
                {reason}
              </Fact>
            ))}
          </dl>
        </section>
      )}
    </Page>
  );
}
