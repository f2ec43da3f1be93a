/** Other vendors' agents: how they are, what they did last, where their changes are reviewed (PR-8, UI-35). */

import { Bot } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client.ts";
import type { AgentRow, AgentRun } from "../api/types.ts";
import { Page } from "../app/page.tsx";
import { useLinks } from "../app/place.tsx";
import { ago, dollars, moment } from "../state/words.ts";
import { t } from "../text.ts";
import { Empty } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";

const TONES: Readonly<Record<string, string>> = { operative: "ok", done: "ok", failed: "danger", interrupted: "warn" };

function Badge({ state, words }: { state: string; words: Readonly<Record<string, string>> }) {
  return <span className={`badge ${TONES[state] ?? ""}`}>{words[state] ?? state}</span>;
}

function Head({ names, last }: { names: readonly string[]; last?: string }) {
  return (
    <thead>
      <tr>
        {names.map((name) => (
          <th key={name} scope="col">
            {name}
          </th>
        ))}
        {last && (
          <th scope="col">
            <span className="hidden">{last}</span>
          </th>
        )}
      </tr>
    </thead>
  );
}

function Agents({ rows, onTried }: { rows: readonly AgentRow[]; onTried: () => void }) {
  const tryIt = (name: string): void => {
    void api.probeAgent(name).then((probe) => {
      toast(t.agentTried(name, t.agentStates[probe.status] ?? probe.status, probe.detail));
      onTried();
    }, complain);
  };
  return (
    <div className="card table-scroll" tabIndex={0} role="region" aria-label={t.agents}>
      <table className="plain left agents">
        <Head names={[t.agentHead, t.agentState, t.agentCan]} last={t.options} />
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.type} ${row.name}`}>
              <td>
                <strong>{row.display_name || row.name}</strong> {row.display_name && <code>{row.name}</code>}
                <div className="muted">
                  {[
                    t.agentTypes[row.type] ?? row.type,
                    row.version && t.agentVersionIs(row.version),
                    row.model,
                    row.max_cost !== null && t.agentMost(dollars(row.max_cost)),
                  ]
                    .filter(Boolean)
                    .join(", ")}
                </div>
              </td>
              <td>
                <Badge state={row.status} words={t.agentStates} />
                <div className="muted">{row.detail || row.description}</div>
              </td>
              <td className="muted">{row.capabilities.map((name) => name.replaceAll("_", " ")).join(", ") || "–"}</td>
              <td>
                {row.type !== "subagent" && (
                  <button type="button" className="button small plain" aria-label={t.tryAgentLabel(row.name)} onClick={() => tryIt(row.name)}>
                    {t.tryAgent}
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Changes({ run }: { run: AgentRun }) {
  const links = useLinks();
  const files = (run.changes?.["written"] ?? 0) + (run.changes?.["deleted"] ?? 0);
  if (!run.changes || files === 0) return <span className="muted">{t.noFiles}</span>;
  const said = t.agentChanged(files, run.changes["added_lines"] ?? 0, run.changes["removed_lines"] ?? 0);
  return run.conversation_id ? <Link href={links.review(run.conversation_id)}>{said}</Link> : <>{said}</>;
}

function Runs({ rows }: { rows: readonly AgentRun[] }) {
  return (
    <div className="card table-scroll" tabIndex={0} role="region" aria-label={t.agentRuns}>
      <table className="plain left agents">
        <Head names={[t.agentHead, t.agentAsked, t.agentState, t.agentChanges, t.cost]} />
        <tbody>
          {rows.map((run) => (
            <tr key={`${run.session_id} ${run.at}`}>
              <td>
                <code>{run.agent}</code>
                <div className="muted" title={moment(run.at)}>
                  {ago(run.at)}
                </div>
              </td>
              <td>{run.prompt}</td>
              <td>
                <Badge state={run.state} words={t.agentRunStates} />
                {run.error && <div className="muted">{run.error}</div>}
              </td>
              <td>
                <Changes run={run} />
                {run.landed?.landing != null && <div className="muted">{t.agentLanded}</div>}
              </td>
              <td>{run.cost === null ? "–" : dollars(run.cost)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export default function AgentsPage() {
  const [agents, setAgents] = useState<AgentRow[] | null>(null);
  const [runs, setRuns] = useState<AgentRun[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const load = useCallback((): void => {
    Promise.all([api.agents(), api.agentRuns()]).then(
      ([known, last]) => {
        setAgents(known);
        setRuns(last);
      },
      (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
    );
  }, []);
  useEffect(load, [load]);
  return (
    <Page title={t.agents} about={t.agentsAbout} problem={problem} ready={agents !== null}>
      <section>
        <h2 className="section-title">{t.agentRuns}</h2>
        {runs.length > 0 ? (
          <Runs rows={runs} />
        ) : (
          <Empty icon={Bot} title={t.noAgentRuns}>
            <p>{t.noAgentRunsText}</p>
          </Empty>
        )}
      </section>
      <section>
        <h2 className="section-title">{t.agents}</h2>
        {agents && <Agents rows={agents} onTried={load} />}
      </section>
    </Page>
  );
}
