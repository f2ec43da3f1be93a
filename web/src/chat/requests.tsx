/** Questions to the person: approvals, plans, the agent's own, budgets (UI-22). Any door may have answered first. */

import { CircleHelp, ClipboardList, ShieldQuestion, Wallet } from "lucide-react";
import { useEffect, useState } from "react";
import { type AnswerMore, api, ApiError } from "../api/client.ts";
import type { ToolUse } from "../api/frames.ts";
import { useFace } from "../app/place.tsx";
import { serverNow } from "../state/clock.ts";
import type { RequestEntry } from "../state/entries.ts";
import { seenName, seenText } from "../state/hidden_marks.ts";
import { ruleInWords, stepInWords } from "../state/plain.ts";
import { t } from "../text.ts";
import { Markdown } from "../ui/markdown.tsx";
import { complain, toast } from "../ui/toasts.tsx";
import { CallChoice, type CallAnswers, withAnswer } from "./call_choice.tsx";
import { DiffCard, DiffCount } from "./diff_card.tsx";

/** How long a question that was just drawn takes no press, which was meant for what was there before it. */
const SETTLES_MS = 400;

function useAnswer(entry: RequestEntry): { busy: boolean; answer: (decision: string, more?: AnswerMore) => void } {
  const [busy, setBusy] = useState(true);
  useEffect(() => {
    const timer = setTimeout(() => setBusy(false), SETTLES_MS);
    return () => clearTimeout(timer);
  }, []);
  const id = entry.key.slice("ask:".length);
  const answer = (decision: string, more: AnswerMore = {}): void => {
    setBusy(true);
    api.answer(id, decision, more).catch((error: unknown) => {
      setBusy(false);
      if (error instanceof ApiError && error.code === "already_answered") toast(t.answeredElsewhere);
      else complain(error);
    });
  };
  return { busy, answer };
}

function Countdown({ until }: { until: string }) {
  const [left, setLeft] = useState(() => new Date(until).getTime() - serverNow());
  useEffect(() => {
    const timer = setInterval(() => setLeft(new Date(until).getTime() - serverNow()), 1000);
    return () => clearInterval(timer);
  }, [until]);
  if (left <= 0) return <span className="time">{t.timeIsUp}</span>;
  const minutes = Math.floor(left / 60_000);
  const rest = String(Math.floor((left % 60_000) / 1000)).padStart(2, "0");
  return (
    <span className="time" role="timer" aria-live="off">
      {t.timeLeft(minutes >= 2880 ? t.days(Math.round(minutes / 1440)) : minutes >= 60 ? t.hours(Math.round(minutes / 60)) : `${minutes}:${rest}`)}
    </span>
  );
}

function Call({ tool }: { tool: ToolUse }) {
  const face = useFace();
  const { path, content, command, code, new: added, old: removed, ...others } = tool.input;
  const body = [content, command, code].find((value) => typeof value === "string") as string | undefined;
  const isDiff = tool.diff !== undefined && tool.diff.text !== "";
  const rest = Object.keys(others).length > 0 ? JSON.stringify(others, null, 2) : "";
  return (
    <div className="what">
      <span>
        {face === "dev" ? <span className="name">{tool.name}</span> : <strong>{stepInWords({ tool: tool.name, input: tool.input, status: "running" })}</strong>}{" "}
        <span className="mono muted">{typeof path === "string" && (face === "dev" || path.slice(1).includes("/")) ? seenName(path) : ""}</span>{" "}
        {isDiff && tool.diff && <DiffCount diff={tool.diff} />}
      </span>
      {isDiff && tool.diff && <DiffCard diff={tool.diff} name={tool.id} />}
      {rest && rest !== "{}" && !isDiff && <pre tabIndex={0}>{seenText(rest)}</pre>}
      {body !== undefined && !isDiff && <pre tabIndex={0}>{seenText(body)}</pre>}
      {!isDiff && typeof removed === "string" && <pre tabIndex={0}>{seenText(`- ${removed.split("\n").join("\n- ")}`)}</pre>}
      {!isDiff && typeof added === "string" && <pre tabIndex={0}>{seenText(`+ ${added.split("\n").join("\n+ ")}`)}</pre>}
    </div>
  );
}

const ICONS = { approval: ShieldQuestion, effect: ShieldQuestion, plan: ClipboardList, user: CircleHelp, budget: Wallet };

function Settled({ entry }: { entry: RequestEntry }) {
  const Icon = ICONS[entry.ask];
  const face = useFace();
  const names = face === "dev" ? entry.tools.map((tool) => tool.name).join(", ") : "";
  return (
    <div className="ask settled">
      <span style={{ display: "flex", gap: "0.5rem", alignItems: "center" }}>
        <Icon size={15} aria-hidden="true" />
        <span>
          {t.settled(entry.ask, entry.decision ?? "", names)}
          {entry.feedback ? ` – ${entry.feedback}` : ""}
        </span>
      </span>
    </div>
  );
}

const SCOPES = ["workspace", "session", "everywhere"] as const;

/** "Always" and where, with the rules that it would keep; nothing where none can be made (UI-71). */
function Always({ rules, busy, answer }: { rules: readonly string[]; busy: boolean; answer: (decision: string) => void }) {
  const face = useFace();
  const [scope, setScope] = useState<(typeof SCOPES)[number]>("workspace");
  if (rules.length === 0) return null;
  return (
    <div className="always">
      <button type="button" className="button" disabled={busy} onClick={() => answer(`always_${scope}`)}>
        {t.always}
      </button>
      <select className="input" aria-label={t.alwaysWhere} value={scope} onChange={(event) => setScope(event.target.value as typeof scope)}>
        {SCOPES.map((one) => (
          <option key={one} value={one}>
            {t.alwaysIn[one]}
          </option>
        ))}
      </select>
      {face === "dev" ? <code>{rules.map(seenText).join(", ")}</code> : <span className="muted">{t.covers(rules.map((rule) => ruleInWords(seenText(rule))))}</span>}
    </div>
  );
}

function ApprovalCard({ entry }: { entry: RequestEntry }) {
  const face = useFace();
  const { busy, answer } = useAnswer(entry);
  const rules = [...new Set(entry.tools.flatMap((tool) => tool.rules ?? []))];
  const [said, setSaid] = useState<CallAnswers>({});
  /** What was said of single calls stands, whatever is said of all. */
  const allow = (decision: string): void => answer(decision, Object.keys(said).length > 0 ? { calls: said } : {});
  return (
    <section className="ask" id={entry.key} aria-label={t.approvalNeeded}>
      <h2>
        <ShieldQuestion size={18} aria-hidden="true" />
        {face === "dev" ? t.approvalNeeded : t.mayI}
      </h2>
      {entry.tools.map((tool) => (
        <div key={tool.id} className="one-call">
          <Call tool={tool} />
          <CallChoice
            tool={tool}
            isAlone={entry.tools.length === 1}
            busy={busy}
            said={said[tool.id]}
            say={(one) => setSaid((before) => withAnswer(before, tool.id, one))}
          />
        </div>
      ))}
      <div className="actions">
        <button type="button" className="button primary" disabled={busy} onClick={() => allow("approve")}>
          {t.approve}
        </button>
        <button type="button" className="button danger" disabled={busy} onClick={() => answer("deny")}>
          {t.deny}
        </button>
        <button type="button" className="button" disabled={busy} title={t.autoApproveHint} onClick={() => allow("auto_approve")}>
          {t.autoApprove}
        </button>
      </div>
      <Always rules={rules} busy={busy} answer={allow} />
      {entry.expiresAt && <Countdown until={entry.expiresAt} />}
    </section>
  );
}

function PlanCard({ entry }: { entry: RequestEntry }) {
  const { busy, answer } = useAnswer(entry);
  const [feedback, setFeedback] = useState("");
  return (
    <section className="ask" aria-label={t.planReady}>
      <h2>
        <ClipboardList size={18} aria-hidden="true" />
        {t.planReady}
      </h2>
      <div className="plan" tabIndex={0}>
        <Markdown text={entry.text} />
      </div>
      <label className="field">
        <span>{t.planFeedback}</span>
        <textarea className="input" rows={2} value={feedback} onChange={(event) => setFeedback(event.target.value)} />
      </label>
      <div className="actions">
        <button type="button" className="button primary" disabled={busy} onClick={() => answer("approve")}>
          {t.approvePlan}
        </button>
        <button type="button" className="button danger" disabled={busy} onClick={() => answer("reject", feedback.trim() ? { feedback: feedback.trim() } : {})}>
          {t.rejectPlan}
        </button>
      </div>
    </section>
  );
}

function QuestionCard({ entry }: { entry: RequestEntry }) {
  const { busy, answer } = useAnswer(entry);
  const [words, setWords] = useState("");
  const offered = entry.tools[0]?.input["options"];
  const options = Array.isArray(offered) ? offered.map(String) : [];
  const choices = entry.ask === "effect" ? t.effectChoices : [];
  return (
    <section className="ask" aria-label={t.question}>
      <h2>
        <CircleHelp size={18} aria-hidden="true" />
        {entry.ask === "effect" ? t.effectQuestion : t.question}
      </h2>
      {entry.text && <Markdown text={entry.text} />}
      {entry.ask === "effect" && entry.tools.map((tool) => <Call key={tool.id} tool={tool} />)}
      <div className="actions">
        {choices.map(([decision, label]) => (
          <button key={decision} type="button" className="button" disabled={busy} onClick={() => answer(decision)}>
            {label}
          </button>
        ))}
        {options.map((option) => (
          <button key={option} type="button" className="button" disabled={busy} onClick={() => answer(option)}>
            {option}
          </button>
        ))}
      </div>
      {entry.ask === "user" && (
        <form
          style={{ display: "flex", gap: "0.5rem" }}
          onSubmit={(event) => {
            event.preventDefault();
            if (words.trim()) answer(words.trim());
          }}
        >
          <input className="input" aria-label={t.yourAnswer} placeholder={t.yourAnswer} value={words} onChange={(event) => setWords(event.target.value)} />
          <button type="submit" className="button primary" disabled={busy || !words.trim()}>
            {t.answer}
          </button>
        </form>
      )}
    </section>
  );
}

function BudgetCard({ entry }: { entry: RequestEntry }) {
  const { busy, answer } = useAnswer(entry);
  const [amount, setAmount] = useState("1");
  return (
    <section className="ask" aria-label={t.budgetSpent}>
      <h2>
        <Wallet size={18} aria-hidden="true" />
        {t.budgetSpent}
      </h2>
      <p>{entry.text}</p>
      <div className="actions">
        <label className="check">
          <span>{t.raiseBy}</span>
          <input className="input" style={{ width: "6rem" }} type="number" min="0.01" step="0.5" value={amount} onChange={(event) => setAmount(event.target.value)} />
        </label>
        <button type="button" className="button primary" disabled={busy || !(Number(amount) > 0)} onClick={() => answer("raise", { amount: Number(amount) })}>
          {t.raise}
        </button>
        <button type="button" className="button" disabled={busy} onClick={() => answer("stop")}>
          {t.stopHere}
        </button>
      </div>
    </section>
  );
}

export function RequestCard({ entry }: { entry: RequestEntry }) {
  if (entry.decision !== null) return <Settled entry={entry} />;
  if (entry.ask === "plan") return <PlanCard entry={entry} />;
  if (entry.ask === "budget") return <BudgetCard entry={entry} />;
  if (entry.ask === "user" || entry.ask === "effect") return <QuestionCard entry={entry} />;
  return <ApprovalCard entry={entry} />;
}
