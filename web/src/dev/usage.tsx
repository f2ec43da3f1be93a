/** Tokens and cost over time, by model and by conversation (UI-35). */

import { ChartNoAxesColumn } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client.ts";
import type { OutcomeRow, UsageRow } from "../api/types.ts";
import { useLinks } from "../app/place.tsx";
import { Page } from "../app/page.tsx";
import { useSessions } from "../sessions/list.ts";
import { serverNow } from "../state/clock.ts";
import { costOf, day, dollars, month, short } from "../state/words.ts";
import { t } from "../text.ts";
import { Empty } from "../ui/kit.tsx";
import { useMedia } from "../ui/media.ts";
import { useMore } from "../ui/more.tsx";
import { Budgets } from "./budgets.tsx";

const WIDTH = 720;
const NARROW = 300;
const HEIGHT = 170;
const FOOT = 22;
const DAYS = 30;
const DAYS_ON_A_PHONE = 14;
const MONTHS = 12;
const PHONE = "(max-width: 640px)";

/** Days without any use are days, too: `days` of them, or as many as there are, up to today. */
export function everyDay(rows: readonly UsageRow[], days: number, today = new Date(serverNow())): UsageRow[] {
  const known = new Map(rows.map((row) => [row.key, row]));
  return Array.from({ length: days }, (_, back) => {
    const day = new Date(today.getTime() - (days - 1 - back) * 86_400_000).toISOString().slice(0, 10);
    return known.get(day) ?? { key: day, calls: 0, input_tokens: 0, output_tokens: 0, cost: 0 };
  });
}

/** The same by month, as many months back as there is something to show, at most `months` of them. */
export function everyMonth(rows: readonly UsageRow[], months: number, today = new Date(serverNow())): UsageRow[] {
  const sums = new Map<string, UsageRow>();
  for (const row of rows) {
    const key = row.key.slice(0, 7);
    const old = sums.get(key) ?? { key, calls: 0, input_tokens: 0, output_tokens: 0, cost: 0 };
    sums.set(key, {
      key,
      calls: old.calls + row.calls,
      input_tokens: old.input_tokens + row.input_tokens,
      output_tokens: old.output_tokens + row.output_tokens,
      cost: (old.cost ?? 0) + (row.cost ?? row.known_cost ?? 0),
    });
  }
  const all = Array.from({ length: months }, (_, back) => {
    const key = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - (months - 1 - back), 1)).toISOString().slice(0, 7);
    return sums.get(key) ?? { key, calls: 0, input_tokens: 0, output_tokens: 0, cost: 0 };
  });
  const first = all.findIndex((row) => row.calls > 0);
  return first < 0 ? all.slice(-1) : all.slice(first);
}

/** A session's title; a subagent's own session is told as part of the one it works for. */
function nameOf(key: string, titles: ReadonlyMap<string, string | null | undefined>): { id: string; name: string } {
  const [id = key, ...below] = key.split(".sub");
  const title = titles.get(id) || id;
  return { id, name: below.length > 0 ? t.partOf(title, `subagent_${below.join(".")}`) : title };
}

/** Bars over days; the table below says the same in figures. */
function Plot({ rows, value, label }: { rows: readonly UsageRow[]; value: (row: UsageRow) => number; label: (value: number) => string }) {
  const narrow = useMedia(PHONE);
  const width = narrow ? NARROW : WIDTH;
  const most = Math.max(...rows.map(value), 1e-9);
  const step = width / Math.max(rows.length, 1);
  const every = Math.ceil(rows.length / (narrow ? 3 : 8));
  return (
    <svg className="plot" viewBox={`0 0 ${width} ${HEIGHT}`} preserveAspectRatio="xMinYMid meet" role="img" aria-label={t.plotLabel}>
      <line x1="0" x2={width} y1={HEIGHT - FOOT} y2={HEIGHT - FOOT} />
      {rows.map((row, index) => {
        const height = (value(row) / most) * (HEIGHT - FOOT - 22);
        return (
          <g key={row.key} transform={`translate(${index * step}, 0)`}>
            <title>
              {dayOrMonth(row.key)}: {label(value(row))}
            </title>
            <rect className="bar" x={step * 0.15} width={Math.min(step * 0.7, 56)} y={HEIGHT - FOOT - height} height={height > 0 ? Math.max(height, 2) : 0} rx="3" />
            {value(row) === most && (
              <text x={step * 0.5} y={HEIGHT - FOOT - height - 6} textAnchor={anchor(index, rows.length)}>
                {label(value(row))}
              </text>
            )}
            {(rows.length - 1 - index) % every === 0 && (
              <text x={step * 0.5} y={HEIGHT - 6} textAnchor={anchor(index, rows.length)}>
                {dayOrMonth(row.key)}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

function dayOrMonth(key: string): string {
  return key.length > 7 ? day(key) : month(key);
}

/** Words at an edge grow inwards. */
function anchor(index: number, of: number): "start" | "middle" | "end" {
  return index === 0 ? "start" : index === of - 1 ? "end" : "middle";
}

function Table({ rows, head, name }: { rows: readonly UsageRow[]; head: string; name: (row: UsageRow) => React.ReactNode }) {
  const [shown, more] = useMore(rows);
  return (
    <div className="card table-scroll" tabIndex={0} role="region" aria-label={head}>
      <table className="plain">
        <thead>
          <tr>
            <th scope="col">{head}</th>
            <th scope="col" className="roomy">{t.calls}</th>
            <th scope="col">{t.tokensIn}</th>
            <th scope="col">{t.tokensOut}</th>
            <th scope="col">{t.cost}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={row.key}>
              <td>{name(row)}</td>
              <td className="roomy">{row.calls}</td>
              <td>{short(row.input_tokens)}</td>
              <td>{short(row.output_tokens)}</td>
              <td>{costOf(row)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {more}
    </div>
  );
}

const OUTCOMES = ["landed", "part", "discarded", "undone", "open"] as const;

/** What became of the changes of each turn; the same counts as `bowerbird usage --outcomes`. */
function Outcomes({ rows, head }: { rows: readonly OutcomeRow[]; head: string }) {
  return (
    <div className="card table-scroll" tabIndex={0} role="region" aria-label={t.outcomesBy(head)}>
      <table className="plain">
        <thead>
          <tr>
            <th scope="col">{head}</th>
            <th scope="col">{t.changesWord}</th>
            {OUTCOMES.map((state) => (
              <th key={state} scope="col">
                {t.becameOf[state]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key}>
              <td className="mono">{row.key || "–"}</td>
              <td>{row.changes}</td>
              {OUTCOMES.map((state) => (
                <td key={state}>{row[state]}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export default function UsagePage() {
  const links = useLinks();
  const { rows: sessions } = useSessions();
  const [found, setFound] = useState<{ day: UsageRow[]; model: UsageRow[]; conversation: UsageRow[] } | null>(null);
  const [outcomes, setOutcomes] = useState<readonly { head: string; rows: OutcomeRow[] }[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    Promise.all([api.usage("day"), api.usage("model"), api.usage("conversation")]).then(
      ([day, model, conversation]) => setFound({ day: day.rows, model: model.rows, conversation: conversation.rows }),
      (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
    );
    Promise.all([api.outcomes("model"), api.outcomes("preset"), api.outcomes("agent")]).then(
      ([model, preset, agent]) =>
        setOutcomes([
          { head: t.model, rows: model.rows },
          { head: t.preset, rows: preset.rows },
          { head: t.agent, rows: agent.rows },
        ]),
      () => undefined, // said above already, where the server cannot be reached
    );
  }, []);
  const most = useMedia(PHONE) ? DAYS_ON_A_PHONE : DAYS;
  const days = useMemo(() => everyDay(found?.day ?? [], most), [found, most]);
  const months = useMemo(() => everyMonth(found?.day ?? [], MONTHS), [found]);
  const [byMonth, setByMonth] = useState(false);
  const bars = byMonth ? months : days;
  const titles = new Map((sessions ?? []).map((row) => [row.id, row.title]));
  return (
    <Page title={t.usage} problem={problem} ready={found !== null}>
          {found && found.day.length === 0 && (
            <Empty icon={ChartNoAxesColumn} title={t.noUsage}>
              <p>{t.noUsageText}</p>
            </Empty>
          )}
          {found && found.day.length > 0 && (
            <>
              {months.length > 1 && (
                <div className="segmented" role="group" aria-label={t.barsOf}>
                  {[false, true].map((value) => (
                    <button key={String(value)} type="button" className="button small" aria-pressed={byMonth === value} onClick={() => setByMonth(value)}>
                      {value ? t.months : t.daysWord}
                    </button>
                  ))}
                </div>
              )}
              <section>
                <h2 className="section-title">{byMonth ? t.costByMonth : t.costByDay}</h2>
                <div className="card pad">
                  <Plot rows={bars} value={(row) => row.cost ?? row.known_cost ?? 0} label={dollars} />
                </div>
              </section>
              <section>
                <h2 className="section-title">{byMonth ? t.tokensByMonth : t.tokensByDay}</h2>
                <div className="card pad">
                  <Plot rows={bars} value={(row) => row.input_tokens + row.output_tokens} label={short} />
                </div>
              </section>
              <section>
                <h2 className="section-title">{t.byModel}</h2>
                <Table rows={found.model} head={t.model} name={(row) => <span className="mono">{row.key}</span>} />
              </section>
              <section>
                <h2 className="section-title">{t.bySession}</h2>
                <Table
                  rows={found.conversation}
                  head={t.title}
                  name={(row) => {
                    const { id, name } = nameOf(row.key, titles);
                    return <Link href={links.chat(id)}>{name}</Link>;
                  }}
                />
              </section>
            </>
          )}
          {outcomes.some(({ rows }) => rows.length > 0) && (
            <section>
              <h2 className="section-title">{t.outcomes}</h2>
              {outcomes.map(({ head, rows }) => (
                <Outcomes key={head} head={head} rows={rows} />
              ))}
            </section>
          )}
          <Budgets />
    </Page>
  );
}
