/** A comment on a line: written, or shown. Not here: where it is kept (`comments.ts`). */

import { Check, MessageSquareReply, Trash2 } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import { useLinks } from "../app/place.tsx";
import { useLive } from "../chat/use_live.ts";
import { answerOf } from "../state/answers.ts";
import { t } from "../text.ts";
import { IconButton } from "../ui/kit.tsx";
import { threadsOf, type Thread } from "../state/comments.ts";
import { seenName } from "../state/hidden_marks.ts";
import type { ChangedFile } from "../state/review.ts";
import type { Comments, ReviewComment } from "./comments.ts";

/** What is being typed, by the form's id: its row is drawn anew whenever the agent changes the branch. */
const typed = new Map<string, string>();

/** Return what was typed into a form and not added yet. */
export function typedIn(id: string): string {
  return (typed.get(id) ?? "").trim();
}

interface FormProps {
  place: { id: string; line: number; endLine: number | null };
  onSave: (text: string) => void;
  onCancel: () => void;
}

export function CommentForm({ place, onSave, onCancel }: FormProps) {
  const [text, setText] = useState(typed.get(place.id) ?? "");
  const lines = place.endLine ? t.lines(place.line, place.endLine) : t.line(place.line);
  return (
    <form
      className="comment-box"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim()) onSave(text.trim());
      }}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === "Escape") onCancel();
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && text.trim()) onSave(text.trim());
      }}
    >
      <label className="field">
        <span>{t.commentOn(lines)}</span>
        <textarea className="input" autoFocus value={text} placeholder={t.commentHint} onChange={(event) => {
            typed.set(place.id, event.target.value);
            setText(event.target.value);
          }} />
      </label>
      <div className="actions">
        <button type="submit" className="button primary small" disabled={!text.trim()}>
          {t.addComment}
        </button>
        <button type="button" className="button small" onClick={onCancel}>
          {t.cancel}
        </button>
      </div>
    </form>
  );
}

interface ViewProps {
  conversation: string;
  comment: ReviewComment;
  outdated: boolean;
  onRemove: () => void;
}

interface ThreadProps {
  conversation: string;
  thread: Thread;
  outdated: boolean;
  comments: Comments;
  /** Write one more on the same lines; not where these are gone. */
  onReply?: (() => void) | undefined;
}

/** What was said about some lines; once it is resolved, one line that opens it again. */
export function ThreadView({ conversation, thread, outdated, comments, onReply }: ThreadProps) {
  const ids = thread.comments.map((comment) => comment.id);
  const first = thread.comments[0];
  if (!first) return null;
  if (thread.resolved) {
    return (
      <div className="comment-thread resolved">
        <Check size={14} aria-hidden="true" />
        <span className="clip grow">{t.resolvedThread(thread.comments.length, first.text)}</span>
        <button type="button" className="button small" onClick={() => comments.resolve(ids, false)}>
          {t.reopenThread}
        </button>
      </div>
    );
  }
  const isSent = thread.comments.some((comment) => comment.sent);
  return (
    <div className="comment-thread" role="group" aria-label={t.threadOn(first.line)}>
      {thread.comments.map((comment) => (
        <CommentView key={comment.id} conversation={conversation} comment={comment} outdated={outdated} onRemove={() => comments.remove(comment.id)} />
      ))}
      {isSent && (
        <div className="actions">
          {onReply && (
            <button type="button" className="button small" onClick={onReply}>
              {t.replyThread}
            </button>
          )}
          <button type="button" className="button small" onClick={() => comments.resolve(ids, true)}>
            {t.resolveThread}
          </button>
        </div>
      )}
    </div>
  );
}

/** Comments on files that the branch does not change any more: kept, and sent like the others. */
export function LostComments({ conversation, comments, files }: { conversation: string; comments: Comments; files: readonly ChangedFile[] }) {
  const known = new Set(files.map((file) => file.path));
  const lost = threadsOf(comments.all.filter((comment) => !known.has(comment.path)));
  if (lost.length === 0) return null;
  return (
    <details className="lost-comments" open={lost.some((thread) => thread.comments.some((comment) => !comment.sent))}>
      <summary>{t.lostComments(lost.length)}</summary>
      {lost.map((thread) => (
        <div key={thread.key}>
          <p className="mono muted">{seenName(thread.comments[0]?.path.slice(1) ?? "")}</p>
          <ThreadView conversation={conversation} thread={thread} outdated comments={comments} />
        </div>
      ))}
    </details>
  );
}

/** What the agent said to it, once its turn has said anything. */
function Answer({ conversation, turn }: { conversation: string; turn: string }) {
  const links = useLinks();
  const { state } = useLive(conversation);
  const words = answerOf(state.entries, turn);
  return (
    <div className="answer">
      <MessageSquareReply size={14} aria-hidden="true" />
      <span className="clip grow">{words ?? t.noAnswerYet}</span>
      <Link href={`${links.chat(conversation)}#${turn}`}>{t.toAnswer}</Link>
    </div>
  );
}

export function CommentView({ conversation, comment, outdated, onRemove }: ViewProps) {
  const lines = comment.endLine ? t.lines(comment.line, comment.endLine) : t.line(comment.line);
  return (
    <div className="comment-box">
      <div className="comment-head">
        <span className="badge">{lines}</span>
        <span className={`badge ${comment.sent ? "" : "accent"}`}>{comment.sent ? t.sentToAgent : t.draft}</span>
        {outdated && <span className="badge warn">{t.outdated}</span>}
        <span className="grow" />
        <IconButton icon={Trash2} size={14} className="plain small" label={t.removeComment} onClick={onRemove} />
      </div>
      {outdated && comment.quote.trim() && <pre className="quote">{comment.quote}</pre>}
      <p className="words">{comment.text}</p>
      {comment.sent && comment.turn && <Answer conversation={conversation} turn={comment.turn} />}
    </div>
  );
}
