/** All changed files below each other, drawn as far as they are seen (UI-26). */

import { ChevronsDown, ChevronsUp, UnfoldVertical } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState, type ReactNode, type Ref } from "react";
import { rowsOfFile, sidesOf, STEP, type DiffRow, type Known, type Opened, type Shape, type View } from "../state/diff_rows.ts";
import { hunkData, languageOf, type Gap, type Line } from "../state/hunks.ts";
import { lineNow, lineText, threadsOf } from "../state/comments.ts";
import { hunkChosen, type ChangedFile, type Choice } from "../state/review.ts";
import type { Section } from "../state/window.ts";
import { t } from "../text.ts";
import { newId } from "../ui/browser.ts";
import { useLeft } from "../ui/left.ts";
import { SECTION_GAP, WindowList, type ListHandle } from "../ui/window_list.tsx";
import { Body } from "./bodies.tsx";
import { CommentForm, ThreadView } from "./comment_box.tsx";
import { byFile, type Comments, type ReviewComment } from "./comments.ts";
import type { Contents } from "./contents.ts";
import { FileHead, HunkHead, Notes } from "./file_head.tsx";
import type { Place } from "./keys.ts";
import { Chunk, placeOfLine, type LinePlace, type Widgets } from "./lines.tsx";
import type { Viewed } from "./viewed.ts";

/** A comment being written: what is typed is kept by its id, its place follows its line. */
export interface Form extends LinePlace {
  id: string;
  path: string;
  endLine: number | null;
  quote: string;
  /** On a line that was unfolded: no hunk knows it. */
  between: boolean;
}

interface DiffListProps {
  conversation: string;
  files: readonly ChangedFile[];
  known: ReadonlyMap<string, Known>;
  contents: Contents;
  choice: Choice;
  onChoice: (choice: Choice) => void;
  comments: Comments;
  view: View;
  ignoreSpace: boolean;
  place: Place | null;
  form: Form | null;
  onForm: (form: Form | null) => void;
  handle: Ref<ListHandle>;
  onDecide: (path: string) => void;
  viewed: Viewed;
}

type Row = DiffRow | { kind: "outdated"; key: string; estimate: number };

interface FileShape {
  shut: boolean;
  large: boolean;
  /** A deleted file's content is wanted. */
  gone: boolean;
  gaps: Readonly<Record<string, Opened>>;
}

const USUAL: FileShape = { shut: false, large: false, gone: false, gaps: {} };
/** So many files that were opened or shut are found so again by who comes back. */
const MOST_LEFT = 200;
const HEAD = 46;
const NONE: readonly ReviewComment[] = [];

/** Rows of every file, made again only for files of which something changed. */
function useRows(files: readonly ChangedFile[], known: DiffListProps["known"], shapes: ReadonlyMap<string, FileShape>, view: View, ignoreSpace: boolean) {
  const cache = useRef(new Map<string, { of: readonly unknown[]; rows: readonly DiffRow[] }>());
  return useMemo(
    () =>
      files.map((file) => {
        const shape = shapes.get(file.path) ?? USUAL;
        const mine = known.get(file.path) ?? null;
        const of = [file, mine, shape, view, ignoreSpace];
        const made = cache.current.get(file.path);
        if (made && made.of.every((value, at) => value === of[at])) return made.rows;
        const wanted: Shape = { view: sidesOf(file, view), ignoreSpace, large: shape.large, gaps: shape.gaps };
        const rows = shape.shut ? [] : rowsOfFile(file, mine, wanted);
        cache.current.set(file.path, { of, rows });
        return rows;
      }),
    [files, known, shapes, view, ignoreSpace],
  );
}

function GapRow({ gap, left, up, down, onOpen }: Extract<DiffRow, { kind: "gap" }> & { onOpen: (gap: Gap, top: number, bottom: number) => void }) {
  const many = left === null || left > STEP * 2;
  return (
    <div className="gap-row">
      {many && up && (
        <button type="button" aria-label={t.moreBelow(STEP)} title={t.moreBelow(STEP)} onClick={() => onOpen(gap, STEP, 0)}>
          <ChevronsDown size={14} aria-hidden="true" />
        </button>
      )}
      {many && down && (
        <button type="button" aria-label={t.moreAbove(STEP)} title={t.moreAbove(STEP)} onClick={() => onOpen(gap, 0, STEP)}>
          <ChevronsUp size={14} aria-hidden="true" />
        </button>
      )}
      <button type="button" className="all" onClick={() => onOpen(gap, left ?? STEP * 10, 0)}>
        <UnfoldVertical size={13} aria-hidden="true" />
        {left === null ? t.unchangedRest : t.unchangedLines(left)}
      </button>
    </div>
  );
}

export function DiffList(props: DiffListProps) {
  const { conversation, files, known, contents, choice, onChoice, comments, view, ignoreSpace, place, form, onForm, handle, onDecide, viewed } = props;
  const [left, keepAs] = useLeft<{ shapes: [string, FileShape][]; seen: string }>("shapes");
  const [shapes, setShapes] = useState<ReadonlyMap<string, FileShape>>(() => new Map(left?.shapes));
  const plain = useRows(files, known, shapes, view, ignoreSpace);
  const said = useMemo(() => byFile(comments.all, files), [comments.all, files]);
  const reshape = useCallback((path: string, change: (old: FileShape) => Partial<FileShape>): void => {
    setShapes((old) => {
      const mine = old.get(path) ?? USUAL;
      return new Map(old).set(path, { ...mine, ...change(mine) });
    });
  }, []);
  const sections = useMemo<(Section & { rows: readonly Row[] })[]>(
    () =>
      files.map((file, at) => {
        const rows: readonly Row[] = plain[at] ?? [];
        const old = said.get(file.path)?.outdated.length ?? 0;
        const more: Row[] = old > 0 && rows.length > 0 ? [{ kind: "outdated", key: "outdated", estimate: old * 90 }] : [];
        return { key: file.path, head: HEAD + SECTION_GAP, rows: more.length > 0 ? [...rows, ...more] : rows };
      }),
    [files, plain, said],
  );
  // What was seen is folded, and opens again once it is something else.
  const seen = files.filter(viewed.has).map((file) => file.path).join("\n");
  const before = useRef(left?.seen ?? "");
  keepAs(() => ({ shapes: [...shapes].slice(-MOST_LEFT), seen: before.current }));
  useEffect(() => {
    const [old, now] = [new Set(before.current.split("\n")), new Set(seen.split("\n"))];
    before.current = seen;
    for (const { path } of files) {
      if (now.has(path) && !old.has(path)) reshape(path, () => ({ shut: true }));
      else if (old.has(path) && !now.has(path)) reshape(path, () => ({ shut: false }));
    }
  }, [seen]);
  // Where somebody goes is opened.
  useEffect(() => {
    if (place && shapes.get(place.path)?.shut) reshape(place.path, () => ({ shut: false }));
  }, [place]);
  // What was asked for is asked for again when the branch has moved.
  useEffect(() => {
    for (const file of files) {
      const shape = shapes.get(file.path);
      if (shape?.gone) contents.wantGone(file);
      if (shape && Object.keys(shape.gaps).length > 0) contents.wantText(file);
    }
  }, [contents, shapes]);
  const widgets = useWidgets(props, said);
  const draw = (index: number, number: number): ReactNode => {
    const file = files[index];
    const row = sections[index]?.rows[number];
    if (!file || !row) return null;
    switch (row.kind) {
      case "notes":
        return <Notes file={file} onDecide={() => onDecide(file.path)} />;
      case "body":
        return (
          <Body
            conversation={conversation}
            file={file}
            what={row.what}
            known={known.get(file.path) ?? null}
            contents={contents}
            onLarge={() => reshape(file.path, () => ({ large: true }))}
            onGone={() => reshape(file.path, () => ({ gone: true }))}
          />
        );
      case "gap":
        return (
          <GapRow
            {...row}
            onOpen={(gap, top, bottom) =>
              reshape(file.path, (old) => {
                const now = old.gaps[gap.key] ?? { top: 0, bottom: 0 };
                return { gaps: { ...old.gaps, [gap.key]: { top: now.top + top, bottom: now.bottom + bottom } } };
              })
            }
          />
        );
      case "hunk":
        return (
          <HunkHead
            hunk={row.hunk}
            file={file}
            choice={choice}
            current={place?.path === file.path && place.hunk === row.hunk.id}
            onChoice={onChoice}
            onComment={() => onForm(formAt(file, row.hunk.id))}
          />
        );
      case "lines":
        return (
          <Chunk
            row={row}
            language={languageOf(file.path)}
            leftOut={row.hunk !== null && !hunkChosen(choice, file.path, row.hunk.id)}
            comments={said.get(file.path)?.here ?? NONE}
            form={form?.path === file.path ? `${form.side}${form.line}-${form.endLine ?? ""}` : ""}
            widgets={widgets(file)}
          />
        );
      case "outdated":
        return threadsOf(said.get(file.path)?.outdated ?? NONE).map((thread) => (
          <ThreadView key={thread.key} conversation={conversation} thread={thread} outdated comments={comments} />
        ));
    }
  };
  return (
    <WindowList
      sections={sections}
      label={t.changes}
      handle={handle}
      row={draw}
      section={(index, head, rows) => {
        const file = files[index];
        if (!file) return null;
        const isOpen = !shapes.get(file.path)?.shut;
        const mine = said.get(file.path);
        return (
          <article className={`file-diff ${isOpen ? "open" : ""} ${file.isRed ? "red" : ""} ${place?.path === file.path ? "current" : ""}`} aria-label={file.path.slice(1)} data-path={file.path} tabIndex={-1}>
            {head(
              <FileHead
                file={file}
                open={isOpen}
                comments={[...(mine?.here ?? NONE), ...(mine?.outdated ?? NONE)].filter((comment) => !comment.resolved).length}
                choice={choice}
                onChoice={onChoice}
                onOpen={(open) => reshape(file.path, () => ({ shut: !open }))}
                viewed={viewed.has(file)}
                onViewed={(on) => viewed.set(file, on)}
              />,
            )}
            {rows}
          </article>
        );
      }}
    />
  );
}

/** Return where a comment on a hunk goes: what is new is what there is to talk about, then what is gone. */
export function formAt(file: ChangedFile, hunk: string | null): Form | null {
  const found = file.hunks?.find((one) => one.id === hunk) ?? file.hunks?.[0];
  const lines = found ? hunkData(found).lines : [];
  const first = lines.find((line) => line.type === "insert") ?? lines.find((line) => line.type === "delete") ?? lines[0];
  return first ? { id: newId(), path: file.path, ...placeOfLine(first), endLine: null, quote: first.content, between: false } : null;
}

/** Return a comment being written where its line is now; null when its line is gone. */
export function followed(form: Form, files: readonly ChangedFile[]): Form | null {
  const file = files.find((one) => one.path === form.path);
  if (!file) return null;
  if (file.hunks === null || form.between) return form;
  const line = lineNow(form, file.hunks.map(hunkData));
  if (line === null) return null;
  return line === form.line ? form : { ...form, line, endLine: form.endLine && form.endLine + line - form.line };
}

/** What stands below the lines of a file: its comments, and the form where it is open. */
function useWidgets(props: DiffListProps, said: ReturnType<typeof byFile>): (file: ChangedFile) => Widgets {
  const { conversation, comments, form, onForm, known } = props;
  return (file) => {
    const hunks = (file.hunks ?? []).map(hunkData);
    const at = new Map<string, ReviewComment[]>();
    for (const comment of said.get(file.path)?.here ?? NONE) {
      const line = lineNow(comment, hunks) ?? comment.line;
      const last = line + (comment.endLine ? comment.endLine - comment.line : 0);
      const key = `${comment.side}${last}`;
      at.set(key, [...(at.get(key) ?? []), comment]);
    }
    const save = (text: string): void => {
      if (!form) return;
      const { id, side, line, endLine, quote } = form;
      comments.put({ id, path: file.path, side, line, endLine, text, quote, sent: false });
      onForm(null);
    };
    const reply = (to: ReviewComment | undefined): void => {
      if (!to) return;
      const line = lineNow(to, hunks) ?? to.line;
      onForm({ id: newId(), path: file.path, side: to.side, line, endLine: to.endLine && to.endLine + line - to.line, quote: to.quote, between: false });
    };
    const below = (line: Line): ReactNode => {
      const { side, line: number } = placeOfLine(line);
      const here = at.get(`${side}${number}`) ?? NONE;
      const isForm = form?.path === file.path && form.side === side && (form.endLine ?? form.line) === number;
      if (here.length === 0 && !isForm) return null;
      return (
        <>
          {threadsOf(here).map((thread) => (
            <ThreadView key={thread.key} conversation={conversation} thread={thread} outdated={false} comments={comments} onReply={isForm ? undefined : () => reply(thread.comments[0])} />
          ))}
          {isForm && form && <CommentForm key={form.id} place={form} onCancel={() => onForm(null)} onSave={save} />}
        </>
      );
    };
    const pick = ({ side, line }: LinePlace, extend: boolean): void => {
      const goesOn = extend && form?.path === file.path && form.side === side && line > form.line;
      if (goesOn && form) return onForm({ ...form, endLine: line });
      const shown = lineText(hunks, side, line);
      const quote = shown ?? known.get(file.path)?.text?.[line - 1] ?? "";
      onForm({ id: newId(), path: file.path, side, line, endLine: null, quote, between: shown === null });
    };
    return { below, pick };
  };
}
