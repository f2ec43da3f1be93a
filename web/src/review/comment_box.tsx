/** A comment on a line: written, or shown. Not here: where it is kept (`comments.ts`). */

import { Trash2 } from "lucide-react";
import { useState } from "react";
import { t } from "../text.ts";
import { IconButton } from "../ui/kit.tsx";
import type { ReviewComment } from "./comments.ts";

interface FormProps {
  place: { line: number; endLine: number | null };
  onSave: (text: string) => void;
  onCancel: () => void;
}

export function CommentForm({ place, onSave, onCancel }: FormProps) {
  const [text, setText] = useState("");
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
        <textarea className="input" autoFocus value={text} placeholder={t.commentHint} onChange={(event) => setText(event.target.value)} />
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

export function CommentView({ comment, outdated, onRemove }: { comment: ReviewComment; outdated: boolean; onRemove: () => void }) {
  const lines = comment.endLine ? t.lines(comment.line, comment.endLine) : t.line(comment.line);
  return (
    <div className="comment-box">
      <div style={{ display: "flex", alignItems: "center", gap: "0.5rem" }}>
        <span className="badge">{lines}</span>
        <span className={`badge ${comment.sent ? "" : "accent"}`}>{comment.sent ? t.sentToAgent : t.draft}</span>
        {outdated && <span className="badge warn">{t.outdated}</span>}
        <span className="grow" />
        <IconButton icon={Trash2} size={14} className="plain small" label={t.removeComment} onClick={onRemove} />
      </div>
      <p className="words">{comment.text}</p>
    </div>
  );
}
