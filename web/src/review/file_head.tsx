/** What stands over a file's lines: name, counts, mark, reasons for the red lane, heads of hunks (UI-26 … UI-28). */

import { ChevronDown, ChevronRight, Copy, Eye, MessageSquarePlus, ShieldAlert, TriangleAlert } from "lucide-react";
import { useFace } from "../app/place.tsx";
import type { ReviewHunk } from "../state/hunks.ts";
import { flagDetail, flagReason, hunkChosen, setHunk, type ChangedFile, type Choice } from "../state/review.ts";
import { seenName } from "../state/hidden_marks.ts";
import { t } from "../text.ts";
import { copyText } from "../ui/browser.ts";
import { IconButton } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";
import { placeWords } from "./keys.ts";
import { Counts, FileMark } from "./tree.tsx";

interface HeadProps {
  file: ChangedFile;
  open: boolean;
  comments: number;
  choice: Choice;
  onOpen: (open: boolean) => void;
  onChoice: (choice: Choice) => void;
  viewed: boolean;
  onViewed: (seen: boolean) => void;
}

function mode(value: number | null): string {
  return value === null ? "" : (value & 0o7777).toString(8).padStart(4, "0");
}

function Facts({ file }: { file: ChangedFile }) {
  const remoded = file.oldMode !== null && file.mode !== null && file.oldMode !== file.mode;
  return (
    <>
      {file.kind === "create" && <span className="badge ok">{t.kinds.create}</span>}
      {file.kind === "delete" && <span className="badge danger">{t.kinds.delete}</span>}
      {file.kind === "rename" && <span className="badge accent">{t.kinds.rename}</span>}
      {file.type === "symlink" && <span className="badge">{t.link}</span>}
      {remoded && (
        <span className="badge warn" title={t.modeChanged}>
          {mode(file.oldMode)} → {mode(file.mode)}
        </span>
      )}
    </>
  );
}

export function FileHead({ file, open, comments, choice, onOpen, onChoice, viewed, onViewed }: HeadProps) {
  const face = useFace();
  const Chevron = open ? ChevronDown : ChevronRight;
  return (
    <header>
      <button type="button" className="button small icon plain" aria-expanded={open} aria-label={open ? t.collapse : t.expand} onClick={() => onOpen(!open)}>
        <Chevron size={16} aria-hidden="true" />
      </button>
      <h2 title={file.renamedFrom ? `${file.renamedFrom} → ${file.path}` : file.path}>
        {file.renamedFrom && (
          <span className="from clip">
            <bdi>{seenName(file.renamedFrom.slice(1))}</bdi>
          </span>
        )}
        {file.renamedFrom && <span aria-label={t.renamedTo}>→</span>}
        <span className="path">
          {file.directory && <span className="directory clip">{seenName(file.directory)}</span>}
          {file.directory && <span className="directory">/</span>}
          <span className="clip name">{seenName(file.name)}</span>
        </span>
        <Facts file={file} />
      </h2>
      {face === "dev" && (
        <span className="wide-only">
          <IconButton icon={Copy} size={14} className="plain small" label={t.copyPath} onClick={() => void copyText(file.path.slice(1)).then(() => toast(t.copied), complain)} />
        </span>
      )}
      {comments > 0 && <span className="badge">{t.commentCount(comments)}</span>}
      {file.kind !== "delete" && <Counts file={file} />}
      <label className="check viewed" title={t.viewedHint}>
        <input type="checkbox" checked={viewed} aria-label={t.viewedFile(seenName(file.path.slice(1)))} onChange={() => onViewed(!viewed)} />
        <Eye size={16} aria-hidden="true" />
        <span>{t.viewed}</span>
      </label>
      <FileMark file={file} choice={choice} onChoice={onChoice} word={face === "dev" ? t.landsWord : t.keepsWord} />
    </header>
  );
}

export function Notes({ file, onDecide }: { file: ChangedFile; onDecide?: () => void }) {
  const face = useFace();
  const drift = file.uncertain ? t.uncertainText : file.drift === "conflict" ? t.conflictText : file.drift === "mergeable" ? t.mergeableText : null;
  return (
    <>
      {file.grade !== "free" && (
        <div className={`red-note ${file.isRed ? "" : "warn"}`}>
          {file.flags.map((flag, at) => (
            <span key={flag}>
              <ShieldAlert size={15} aria-hidden="true" />
              <span>
                {(face === "dev" || flag === "tainted") && <strong>{flag === "tainted" ? t.taintedWord : flag} – </strong>}
                {flagReason(flag)}
                {flagDetail(flag, file.reasons[at]) && <span className="muted"> ({flagDetail(flag, file.reasons[at])})</span>}
                {flag === "tainted" && file.taint.length > 0 && ` ${t.taintFrom(file.taint.join(", "))}`}
              </span>
            </span>
          ))}
          {file.isRed && <span className="muted">{t.tickItself}</span>}
        </div>
      )}
      {drift && (
        <div className="red-note warn">
          <span>
            <TriangleAlert size={15} aria-hidden="true" />
            <span>{drift}</span>
            {file.drift === "conflict" && onDecide && (
              <button type="button" className="button small" onClick={onDecide}>
                {t.resolve}
              </button>
            )}
          </span>
        </div>
      )}
    </>
  );
}

interface HunkHeadProps {
  hunk: ReviewHunk;
  file: ChangedFile;
  choice: Choice;
  current: boolean;
  onChoice: (choice: Choice) => void;
  onComment: () => void;
}

export function HunkHead({ hunk, file, choice, current, onChoice, onComment }: HunkHeadProps) {
  const on = hunkChosen(choice, file.path, hunk.id);
  return (
    <div className={`hunk-head ${current ? "current" : ""} ${on ? "" : "off"}`} data-hunk={hunk.id} tabIndex={-1} role="group" aria-label={placeWords(file, { path: file.path, hunk: hunk.id }, choice)}>
      <span className="grow clip">{useFace() === "dev" ? hunk.heading : t.linesFrom(hunk.newStart, hunk.newLines)}</span>
      <button type="button" className="button small plain icon" aria-label={t.commentHunk} title={t.commentHunk} onClick={onComment}>
        <MessageSquarePlus size={14} aria-hidden="true" />
      </button>
      {file.kind !== "rename" && (
        <button type="button" className="button small plain" aria-pressed={on} title={t.hunkHint} onClick={() => onChoice(setHunk(choice, file, hunk.id, !on))}>
          {on ? t.accepted : t.leftOut}
        </button>
      )}
    </div>
  );
}
