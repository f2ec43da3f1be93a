/** One entry of a conversation, drawn for a face. Not here: which entries there are (`rows.ts`). */

import { Download, GitFork, Info, Paperclip, Pencil, TriangleAlert } from "lucide-react";
import { memo, useMemo } from "react";
import { Link } from "wouter";
import { useFace, useLinks } from "../app/place.tsx";
import { commentedPlaces, type CommentedPlace } from "../state/comments.ts";
import type { EndEntry, Entry, NoteEntry, TextEntry, UserEntry } from "../state/entries.ts";
import { seenName } from "../state/hidden_marks.ts";
import { withoutAttachments } from "../state/mentions.ts";
import { landingInWords } from "../state/plain.ts";
import { count, dollars, short } from "../state/words.ts";
import { t } from "../text.ts";
import { Boundary } from "../ui/boundary.tsx";
import { CopyButton } from "../ui/code.tsx";
import { Problem } from "../ui/kit.tsx";
import { Markdown } from "../ui/markdown.tsx";
import { RequestCard } from "./requests.tsx";
import { SubagentCard } from "./subagents.tsx";
import { ActivityPill, Thinking, ToolBlock } from "./tools.tsx";
import { sameRow, type Row, type Shown } from "./rows.ts";

export interface EntryActions {
  conversation: string;
  resume: () => void;
  forkAfter: (turn: string) => void;
  editAndResend: (entry: UserEntry) => void;
}

/** Links to the lines that comments are about. */
function Places({ places, conversation }: { places: readonly CommentedPlace[]; conversation: string }) {
  const links = useLinks();
  return places.map((place, at) => (
    <Link key={at} className="place" href={`${links.review(conversation)}#${encodeURI(place.path)}:${place.line}`}>
      {seenName(place.path.slice(1))}:{place.line}
      {place.endLine ? `–${place.endLine}` : ""}
    </Link>
  ));
}

/** Review comments as they were written, each with the way back to its line (UI-29). */
function ReviewComments({ places, conversation }: { places: readonly CommentedPlace[]; conversation: string }) {
  return (
    <div className="bubble review-comments">
      <strong>{t.commentsSentHead(places.length)}</strong>
      {places.map((place, at) => (
        <div key={at}>
          <Places places={[place]} conversation={conversation} />
          {place.quote && <pre>{place.quote.trimEnd()}</pre>}
          <p>{place.text}</p>
        </div>
      ))}
    </div>
  );
}

function Said({ entry, actions }: { entry: UserEntry; actions: EntryActions }) {
  const face = useFace();
  const places = useMemo(() => commentedPlaces(entry.text), [entry.text]);
  const { words, names } = useMemo(() => withoutAttachments(entry.text), [entry.text]);
  return (
    <div className="said">
      {places ? <ReviewComments places={places} conversation={actions.conversation} /> : <div className="bubble">{words}</div>}
      {!places && names.length > 0 && (
        <div className="along" role="group" aria-label={t.wentAlong}>
          {names.map((name, at) => (
            <span key={at} className="badge">
              <Paperclip size={12} aria-hidden="true" />
              {name}
            </span>
          ))}
        </div>
      )}
      <div className={`by ${face}`}>
        {entry.mode === "interrupt" && <span>{t.interrupting}</span>}
        {entry.mode === "steer" && <span>{t.steering}</span>}
        {entry.by && <span>{entry.by}</span>}
        {entry.door && entry.door !== "web" && <span>{t.through(entry.door)}</span>}
        {face === "dev" && (
          <button type="button" className="button plain small" onClick={() => actions.editAndResend(entry)}>
            <Pencil size={12} aria-hidden="true" />
            {t.editAndResend}
          </button>
        )}
      </div>
    </div>
  );
}

/** A message as a sentence begins. */
const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

function Note({ entry, actions }: { entry: NoteEntry; actions: EntryActions }) {
  const face = useFace();
  if (entry.tone === "error" && face === "user") {
    return (
      <Problem
        actions={
          <button type="button" className="button small" onClick={actions.resume}>
            {t.tryAgain}
          </button>
        }
      >
        <p>
          <strong>{t.cannotGoOn}</strong> {t.whatNextPlain(entry.code)}
        </p>
        <p className="muted">{sentence(entry.text)}</p>
      </Problem>
    );
  }
  if (entry.tone === "error") {
    return (
      <Problem
        actions={
          <button type="button" className="button small" onClick={actions.resume}>
            {t.resume}
          </button>
        }
      >
        <p>{sentence(entry.text)}</p>
        <p className="muted">
          {t.whatNext(entry.code)} {entry.code && <code>{entry.code}</code>}
        </p>
      </Problem>
    );
  }
  const Icon = entry.code === "landing" ? Download : entry.tone === "warn" ? TriangleAlert : Info;
  return (
    <div className="note">
      <Icon size={15} aria-hidden="true" />
      <span>{entry.code === "landing" && face === "user" ? landingInWords(entry.text) : entry.text}</span>
    </div>
  );
}

function End({ entry, actions }: { entry: EndEntry; actions: EntryActions }) {
  const face = useFace();
  const links = useLinks();
  const reason = t.endings[entry.reason ?? ""];
  const mayResume = entry.reason !== null && t.resumable.includes(entry.reason);
  if (face === "user") {
    return (
      <Problem
        tone="info"
        actions={
          mayResume && (
            <button type="button" className="button small" onClick={actions.resume}>
              {t.goOn}
            </button>
          )
        }
      >
        {reason ?? entry.reason}
      </Problem>
    );
  }
  const { usage } = entry;
  return (
    <div className="end-line">
      <span className={`badge ${entry.reason === "end_turn" ? "" : "warn"}`}>{entry.reason ?? entry.state}</span>
      <span>{t.inOut(short(usage.input_tokens), short(usage.output_tokens))}</span>
      <span>{dollars(usage.cost)}</span>
      {!!entry.changed && (
        <Link href={links.review(actions.conversation)}>{count(entry.changed, t.fileChanged, t.filesChanged)}</Link>
      )}
      {entry.turn && (
        <button type="button" className="button plain small wide-only" onClick={() => actions.forkAfter(entry.turn ?? "")}>
          <GitFork size={12} aria-hidden="true" />
          {t.forkHere}
        </button>
      )}
      {mayResume && (
        <button type="button" className="button small" onClick={actions.resume}>
          {t.resume}
        </button>
      )}
      {reason && entry.reason !== "end_turn" && <span>{reason}</span>}
    </div>
  );
}

interface TextProps {
  entry: TextEntry;
  shown: Shown;
  answers: readonly CommentedPlace[];
  actions: EntryActions;
}

function TextPortion({ entry, shown: { portion, first, last }, answers, actions }: TextProps) {
  return (
    <div className={portion.done ? "" : "writing"}>
      <Markdown text={portion.text} done={portion.done} />
      {last && !first && portion.done && (
        <div className="copy-answer">
          <CopyButton text={entry.text} label={t.copyAnswer} />
        </div>
      )}
      {answers.length > 0 && (
        <p className="answers">
          {t.answersComments(answers.length)} <Places places={answers} conversation={actions.conversation} />
        </p>
      )}
    </div>
  );
}

function OneEntry({ entry, actions }: { entry: Exclude<Entry, TextEntry>; actions: EntryActions }) {
  switch (entry.kind) {
    case "user":
      return <Said entry={entry} actions={actions} />;
    case "thinking":
      return <Thinking entry={entry} />;
    case "tool":
      return <ToolBlock entry={entry} conversation={actions.conversation} />;
    case "request":
      return <RequestCard entry={entry} />;
    case "subagent":
      return <SubagentCard entry={entry} />;
    case "note":
      return <Note entry={entry} actions={actions} />;
    case "end":
      return <End entry={entry} actions={actions} />;
  }
}

const NO_ANSWERS: readonly CommentedPlace[] = [];

function Drawn({ row, actions }: { row: Row; actions: EntryActions }) {
  if (row.kind === "work") return <ActivityPill entries={row.entries} />;
  if (row.kind === "entry") return <OneEntry entry={row.entry} actions={actions} />;
  return <TextPortion entry={row.entry} shown={row.shown} answers={row.answers ?? NO_ANSWERS} actions={actions} />;
}

/** Portions of one text stand below each other as the text does. */
function classOf(row: Row): string {
  if (row.kind !== "portion") return "turn-row";
  return `turn-row${row.shown.first ? "" : " goes-on"}${row.shown.last ? "" : " to-go-on"}`;
}

export const RowView = memo(
  function RowView({ row, actions }: { row: Row; actions: EntryActions }) {
    return (
      <div className={classOf(row)}>
        <Boundary of={row}>
          <Drawn row={row} actions={actions} />
        </Boundary>
      </div>
    );
  },
  (before, after) => before.actions === after.actions && sameRow(before.row, after.row),
);
