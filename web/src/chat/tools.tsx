/** What the agent does, as each face shows it: collapsible calls, one pill for users (UI-7). */

import { Check, ChevronRight, CircleSlash, Hourglass, LoaderCircle, Sparkles, TriangleAlert, X } from "lucide-react";
import { memo, useState } from "react";
import { api } from "../api/client.ts";
import type { Entry, ThinkingEntry, ToolEntry } from "../state/entries.ts";
import { activity, keyParameter, readableInput, standing, stepInWords } from "../state/plain.ts";
import { seconds } from "../state/words.ts";
import { t } from "../text.ts";
import { CopyButton } from "../ui/code.tsx";
import { useOpened } from "../ui/opened.ts";
import { complain } from "../ui/toasts.tsx";
import { DiffCard, DiffCount } from "./diff_card.tsx";

/** What goes on turns; while a person is waited for it stands still. The page says which (`data-state`). */
function Going() {
  return (
    <>
      <LoaderCircle size={15} className="spin state-running if-going" aria-hidden="true" />
      <Hourglass size={14} className="state-off if-waiting" aria-label={t.waitsForAnswer} />
    </>
  );
}

function StatusIcon({ status }: { status: string }) {
  if (status === "running") return <Going />;
  if (status === "ok" || status === "done") return <Check size={15} className="state-ok" aria-hidden="true" />;
  if (status === "error" || status === "failed") return <X size={15} className="state-error" aria-hidden="true" />;
  return <CircleSlash size={15} className="state-off" aria-hidden="true" />;
}

interface FullResult {
  text: string;
  next: number | null;
  ms: number | null;
}

/** One call: name, key parameter, status, time; open: input and result, the whole of it on demand. */
export const ToolBlock = memo(function ToolBlock({ entry, conversation }: { entry: ToolEntry; conversation: string }) {
  const [open, setOpen] = useOpened(entry.key);
  const [full, setFull] = useState<FullResult | null>(null);
  const call = entry.key.slice("call:".length);
  const load = async (offset: number): Promise<void> => {
    const page = await api.toolCall(conversation, call, offset);
    setFull({ text: (offset ? (full?.text ?? "") : "") + page.result, next: page.next_offset, ms: page.ms ?? null });
  };
  const took = entry.startedAt && entry.endedAt ? entry.endedAt - entry.startedAt : (full?.ms ?? null);
  const shown = full?.text ?? entry.result ?? entry.progress;
  const block = (
    <details className="tool" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <ChevronRight size={14} className="chevron" aria-hidden="true" />
        <StatusIcon status={entry.status} />
        <span className="name">{entry.tool}</span>
        <span className="key clip">{keyParameter(entry.input)}</span>
        {entry.diff && <DiffCount diff={entry.diff} />}
        {entry.tainted && <span className="badge warn">{t.untrusted}</span>}
        {entry.status !== "ok" && entry.status !== "running" && <span className="badge danger">{entry.status}</span>}
        <span className="hidden">{t.callState(entry.status)}</span>
        {took !== null && <span className="time">{seconds(took)}</span>}
      </summary>
      {open && (
        <div className="body">
          <section>
            <h2>{t.input}</h2>
            <pre tabIndex={0}>{readableInput(entry.input)}</pre>
          </section>
          {shown && (
            <section>
              <h2>{entry.result === null && !full ? t.outputSoFar : t.result}</h2>
              <pre tabIndex={0}>{shown}</pre>
              <div className="actions" style={{ marginTop: "0.4rem" }}>
                {entry.truncated && !full && (
                  <button type="button" className="button small" onClick={() => void load(0).catch(complain)}>
                    {t.fullResult}
                  </button>
                )}
                {full?.next != null && (
                  <button type="button" className="button small" onClick={() => void load(full.next ?? 0).catch(complain)}>
                    {t.more}
                  </button>
                )}
                <CopyButton text={shown} />
              </div>
            </section>
          )}
        </div>
      )}
    </details>
  );
  if (!entry.diff) return block;
  return (
    <div className="tool-with-diff">
      {block}
      <DiffCard diff={entry.diff} name={entry.key} />
    </div>
  );
});

export const Thinking = memo(function Thinking({ entry }: { entry: ThinkingEntry }) {
  const [open, setOpen] = useOpened(entry.key);
  return (
    <details className="thinking" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <ChevronRight size={14} className="chevron" aria-hidden="true" />
        <Sparkles size={14} aria-hidden="true" />
        {entry.done ? t.thought : t.thinksNow}
        {entry.effort && <span className="badge">{entry.effort}</span>}
      </summary>
      <div className="text">{entry.text}</div>
    </details>
  );
});

function step(entry: Entry): string {
  if (entry.kind === "thinking" && entry.text.trim()) return entry.text.trim();
  if (entry.kind === "tool") return stepInWords(entry);
  if (entry.kind === "subagent") return entry.status === "running" ? t.helperWorks : t.helperDone;
  return t.thoughtStep;
}

/** A run of work in one line; a tap shows its steps in plain words. */
export const ActivityPill = memo(function ActivityPill({ entries }: { entries: readonly Entry[] }) {
  const [open, setOpen] = useOpened(`work:${entries[0]?.key ?? ""}`);
  const status = standing(entries);
  const onlyThought = entries.every((entry) => entry.kind === "thinking");
  const thinks = onlyThought && entries.some((entry) => entry.kind === "thinking" && !entry.done);
  const words = onlyThought ? (thinks ? t.thinksNow : t.thoughtStep) : activity(entries);
  return (
    <details className="pill" data-testid="activity" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <StatusIcon status={thinks ? "running" : status} />
        <span className="clip">{words}</span>
      </summary>
      <ol>
        {entries.map((entry) => (
          <li key={entry.key} className={entry.kind === "thinking" ? "thought" : entry.kind === "tool" && entry.status === "error" ? "bad" : ""}>
            {step(entry)}
            {entry.kind === "tool" && entry.status === "error" && (
              <>
                {" "}
                <TriangleAlert size={12} aria-label={t.didNotWork} />
              </>
            )}
          </li>
        ))}
      </ol>
    </details>
  );
});
