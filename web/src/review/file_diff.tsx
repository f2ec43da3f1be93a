/** One changed file: its hunks to accept or leave out, comments on lines (UI-26, UI-27, UI-29). */

import { ChevronDown, ChevronRight, MessageSquarePlus, ShieldAlert, TriangleAlert } from "lucide-react";
import { memo, useEffect, useMemo, useState, type ReactNode } from "react";
import { Decoration, Diff, getChangeKey, Hunk, type ChangeData, type HunkTokens } from "react-diff-view";
import "react-diff-view/style/index.css";
import { api } from "../api/client.ts";
import type { WireHunk } from "../api/types.ts";
import { BranchImage } from "../files/panel.tsx";
import { hunkData, languageOf, withoutWhitespace, zipped, type ReviewHunk } from "../state/hunks.ts";
import { flagReason, hunkChosen, setHunk, type ChangedFile, type Choice } from "../state/review.ts";
import { size } from "../state/words.ts";
import { t } from "../text.ts";
import { newId } from "../ui/browser.ts";
import { Loading, Problem } from "../ui/kit.tsx";
import { CommentForm, CommentView } from "./comment_box.tsx";
import { isOutdated, lineText, type Comments, type ReviewComment } from "./comments.ts";
import { Counts, FileMark } from "./tree.tsx";
import { tokensOf } from "./tokens.ts";

const MOST_LINES = 1500;
const LINGERS_MS = 90;
const IMAGE = /\.(png|jpe?g|gif|webp|avif|bmp|ico)$/i;

export interface FileDiffProps {
  conversation: string;
  file: ChangedFile;
  choice: Choice;
  onChoice: (choice: Choice) => void;
  comments: Comments;
  view: "unified" | "split";
  ignoreSpace: boolean;
  currentHunk: string | null;
  /** The hunk whose first changed line gets a comment, asked for by key. */
  commentOn: string | null;
  onCommented: () => void;
}

/** Hunks of a file: those of the list, or asked for when the list had no room for them. */
function useHunks(conversation: string, file: ChangedFile, wanted: boolean): { hunks: readonly WireHunk[] | null; problem: string | null } {
  const [found, setFound] = useState<readonly WireHunk[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const missing = wanted && file.hunks === null && !file.binary && file.kind !== "delete" && file.type === "file";
  useEffect(() => {
    if (!missing) return;
    let here = true;
    api.diffOf(conversation, file.path).then(
      (diff) => here && setFound(diff.written[0]?.hunks ?? null),
      (error: unknown) => here && setProblem(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      here = false;
    };
  }, [conversation, file.path, missing]);
  return { hunks: file.hunks ?? found, problem };
}

function useTokens(hunks: readonly ReviewHunk[], path: string): HunkTokens | null {
  const [tokens, setTokens] = useState<{ hunks: readonly ReviewHunk[]; tokens: HunkTokens } | null>(null);
  useEffect(() => {
    let here = true;
    const colour = (): void => {
      void tokensOf(hunks, languageOf(path)).then((made) => here && made && setTokens({ hunks, tokens: made }));
    };
    // What is scrolled past is never coloured; what stays is, when nothing else is to be done.
    const timer = setTimeout(() => {
      if (typeof requestIdleCallback === "function") requestIdleCallback(colour, { timeout: 600 });
      else colour();
    }, LINGERS_MS);
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [hunks, path]);
  return tokens && tokens.hunks === hunks ? tokens.tokens : null;
}

function placeOf(change: ChangeData): { side: "old" | "new"; line: number } {
  if (change.type === "normal") return { side: "new", line: change.newLineNumber };
  return { side: change.type === "insert" ? "new" : "old", line: change.lineNumber };
}

function shownNumber(change: ChangeData, side: "old" | "new"): number | null {
  if (change.type === "normal") return side === "old" ? change.oldLineNumber : change.newLineNumber;
  return (change.type === "delete") === (side === "old") ? change.lineNumber : null;
}

function Deleted({ conversation, file }: { conversation: string; file: ChangedFile }) {
  const [lines, setLines] = useState<string | null>(null);
  const show = (): void => {
    api.patchOf(conversation, file.path).then(
      (patch) => setLines(patch.split("\n").filter((line) => line.startsWith("-") && !line.startsWith("---")).map((line) => line.slice(1)).join("\n")),
      (error: unknown) => setLines(error instanceof Error ? error.message : String(error)),
    );
  };
  if (lines !== null) return <pre className="file-foot mono" tabIndex={0} style={{ overflow: "auto", maxHeight: "24rem", margin: 0, background: "var(--del)" }}>{lines}</pre>;
  return (
    <div className="file-foot">
      {t.willBeDeleted}{" "}
      <button type="button" className="button small" onClick={show}>
        {t.showContent}
      </button>
    </div>
  );
}

function RedNote({ file }: { file: ChangedFile }) {
  return (
    <>
      {file.isRed && (
        <div className="red-note">
          {file.flags.map((flag) => (
            <span key={flag}>
              <ShieldAlert size={14} aria-hidden="true" style={{ verticalAlign: "-2px" }} /> <strong>{flag}</strong> – {flagReason(flag)}
            </span>
          ))}
          {file.tainted && (
            <span>
              <ShieldAlert size={14} aria-hidden="true" style={{ verticalAlign: "-2px" }} /> {t.taintedText}
            </span>
          )}
          <span className="muted">{t.tickItself}</span>
        </div>
      )}
      {(file.drift === "conflict" || file.drift === "mergeable" || file.uncertain) && (
        <div className="red-note warn">
          <span>
            <TriangleAlert size={14} aria-hidden="true" style={{ verticalAlign: "-2px" }} />{" "}
            {file.uncertain ? t.uncertainText : file.drift === "conflict" ? t.conflictText : t.mergeableText}
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

function HunkHead({ hunk, file, choice, current, onChoice, onComment }: HunkHeadProps) {
  const on = hunkChosen(choice, file.path, hunk.id);
  return (
    <div className={`hunk-head ${current ? "current" : ""}`} data-hunk={hunk.id}>
      <span className="grow clip">{hunk.content}</span>
      <button type="button" className="button small plain icon" aria-label={t.commentHunk} title={t.commentHunk} onClick={onComment}>
        <MessageSquarePlus size={14} aria-hidden="true" />
      </button>
      <button type="button" className="button small" aria-pressed={on} onClick={() => onChoice(setHunk(choice, file, hunk.id, !on))}>
        {on ? t.accepted : t.leftOut}
      </button>
    </div>
  );
}

function Body({ props, hunks }: { props: FileDiffProps; hunks: readonly WireHunk[] }) {
  const { file, choice, comments, view, ignoreSpace } = props;
  const [all, setAll] = useState(false);
  const [open, setOpen] = useState<{ side: "old" | "new"; line: number; endLine: number | null } | null>(null);
  const full = useMemo(() => hunks.map(hunkData), [hunks]);
  const shown = useMemo(() => {
    const bare = ignoreSpace ? full.map(withoutWhitespace) : full;
    const some = all ? bare : limited(bare);
    return view === "split" ? some.map(zipped) : some;
  }, [full, ignoreSpace, all, view]);
  const tokens = useTokens(shown, file.path);
  const hunkOf = useMemo(() => new Map(shown.flatMap((hunk) => hunk.changes.map((change) => [change, hunk.id] as const))), [shown]);
  const total = full.reduce((sum, hunk) => sum + hunk.changes.length, 0);
  const mine = comments.all.filter((comment) => comment.path === file.path);
  const openAt = (hunk: ReviewHunk): void => {
    // What is new is what there is to talk about; a deletion alone is talked about where it was.
    const kinds = ["insert", "delete", "normal"] as const;
    const first = kinds.flatMap((kind) => hunk.changes.find((change) => change.type === kind) ?? [])[0];
    if (first) setOpen({ ...placeOf(first), endLine: null });
  };
  const { commentOn, onCommented } = props;
  useEffect(() => {
    const hunk = shown.find((one) => one.id === commentOn);
    if (!hunk) return;
    openAt(hunk);
    onCommented();
    // only a new wish opens the form
  }, [commentOn]);
  const widgets = useMemo(() => {
    const made: Record<string, ReactNode> = {};
    for (const hunk of shown) {
      for (const change of hunk.changes) {
        const { side, line } = placeOf(change);
        const here = mine.filter((comment) => comment.side === side && (comment.endLine ?? comment.line) === line && !isOutdated(comment, full));
        const form = open && open.side === side && (open.endLine ?? open.line) === line;
        if (here.length === 0 && !form) continue;
        made[getChangeKey(change)] = (
          <>
            {here.map((comment) => (
              <CommentView key={comment.id} comment={comment} outdated={false} onRemove={() => comments.remove(comment.id)} />
            ))}
            {form && (
              <CommentForm
                place={open}
                onCancel={() => setOpen(null)}
                onSave={(text) => {
                  const quote = lineText(full, open.side, open.line) ?? "";
                  const comment: ReviewComment = { id: newId(), path: file.path, ...open, text, quote, sent: false };
                  comments.put(comment);
                  setOpen(null);
                }}
              />
            )}
          </>
        );
      }
    }
    return made;
  }, [shown, full, mine, open, comments, file.path]);
  const outdated = mine.filter((comment) => isOutdated(comment, full));
  const pick = (change: ChangeData, extend: boolean): void => {
    const { side, line } = placeOf(change);
    const isRange = extend && open !== null && open.side === side && line > open.line;
    setOpen(isRange ? { ...open, endLine: line } : { side, line, endLine: null });
  };
  return (
    <>
      <div className="diff-scroll">
        <Diff
          diffType={file.kind === "create" ? "add" : "modify"}
          viewType={view}
          hunks={[...shown]}
          tokens={tokens}
          widgets={widgets}
          optimizeSelection={view === "split"}
          renderGutter={({ change, side, renderDefault }) => {
            const number = shownNumber(change, side);
            if (number === null) return null;
            return (
              <button type="button" tabIndex={-1} aria-label={t.commentLine(number)} onClick={(event) => pick(change, event.shiftKey)}>
                {renderDefault()}
              </button>
            );
          }}
          generateLineClassName={({ changes, defaultGenerate }) => {
            const change = changes.find(Boolean);
            const id = change && hunkOf.get(change);
            return id && !hunkChosen(choice, file.path, id) ? `${defaultGenerate()} left-out` : defaultGenerate();
          }}
        >
          {(list) =>
            (list as ReviewHunk[]).flatMap((hunk) => [
              <Decoration key={`head-${hunk.id}`}>
                <HunkHead
                  hunk={hunk}
                  file={file}
                  choice={choice}
                  current={props.currentHunk === hunk.id}
                  onChoice={props.onChoice}
                  onComment={() => openAt(hunk)}
                />
              </Decoration>,
              <Hunk key={hunk.id} hunk={hunk} />,
            ])
          }
        </Diff>
      </div>
      {!all && total > MOST_LINES && (
        <div className="file-foot">
          <button type="button" className="button small" onClick={() => setAll(true)}>
            {t.showAllLines(total)}
          </button>
        </div>
      )}
      {outdated.map((comment) => (
        <CommentView key={comment.id} comment={comment} outdated onRemove={() => comments.remove(comment.id)} />
      ))}
    </>
  );
}

/** At most so many lines, so that one huge file does not stop the page. */
function limited(hunks: readonly ReviewHunk[]): readonly ReviewHunk[] {
  let left = MOST_LINES;
  const kept: ReviewHunk[] = [];
  for (const hunk of hunks) {
    if (left <= 0) break;
    kept.push(hunk.changes.length > left ? { ...hunk, changes: hunk.changes.slice(0, left) } : hunk);
    left -= hunk.changes.length;
  }
  return kept.length === hunks.length && left >= 0 ? hunks : kept;
}

function mode(value: number | null): string {
  return value === null ? "" : (value & 0o7777).toString(8).padStart(4, "0");
}

function Content(props: FileDiffProps) {
  const { conversation, file } = props;
  const { hunks, problem } = useHunks(conversation, file, true);
  if (problem) return <Problem>{problem}</Problem>;
  if (file.kind === "delete") return <Deleted conversation={conversation} file={file} />;
  if (file.type !== "file") return <div className="file-foot">{t.isA(file.type)}</div>;
  if (file.binary) {
    return IMAGE.test(file.path) ? (
      <div className="images">
        <BranchImage conversation={conversation} path={file.path} />
      </div>
    ) : (
      <div className="file-foot">{t.binaryText(size(file.size ?? 0))}</div>
    );
  }
  if (hunks === null) return <Loading label={t.loading} />;
  if (hunks.length === 0) return <div className="file-foot">{t.noTextChange}</div>;
  return <Body props={props} hunks={hunks} />;
}

export const FileDiff = memo(function FileDiff(props: FileDiffProps) {
  const { file, choice, onChoice } = props;
  const [open, setOpen] = useState(file.added + file.removed < MOST_LINES * 4);
  const Chevron = open ? ChevronDown : ChevronRight;
  return (
    <article className={`file-diff ${open ? "open" : ""} ${file.isRed ? "red" : ""}`} aria-label={file.path.slice(1)} data-path={file.path}>
      <header>
        <button type="button" className="button small icon plain" aria-expanded={open} aria-label={open ? t.collapse : t.expand} onClick={() => setOpen(!open)}>
          <Chevron size={16} aria-hidden="true" />
        </button>
        <h2>
          <span className="clip" title={file.path}>
            <bdi>{file.path.slice(1)}</bdi>
          </span>
          {file.renamedFrom && <span className="badge">{t.renamedFrom(file.renamedFrom.slice(1))}</span>}
          {file.kind !== "modify" && file.kind !== "rename" && (
            <span className={`badge ${file.kind === "create" ? "ok" : "danger"}`}>{t.kinds[file.kind]}</span>
          )}
          {file.oldMode !== null && file.mode !== null && file.oldMode !== file.mode && (
            <span className="badge warn">
              {mode(file.oldMode)} → {mode(file.mode)}
            </span>
          )}
        </h2>
        <Counts file={file} />
        <FileMark file={file} choice={choice} onChoice={onChoice} />
      </header>
      {open && (
        <>
          <RedNote file={file} />
          <Content {...props} />
        </>
      )}
    </article>
  );
});
