/** The review of a conversation's branch: tree, diffs, keys, land bar (UI-26 … UI-30). */

import { ArrowLeft, Columns2, Keyboard, ListTree, PartyPopper, Pilcrow, Rows2 } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Virtuoso, type VirtuosoHandle } from "react-virtuoso";
import { Link, useLocation } from "wouter";
import { api } from "../api/client.ts";
import { SidebarButton, useMedia } from "../app/shell.tsx";
import { useLinks } from "../app/place.tsx";
import { useFacts, useLive } from "../chat/page.tsx";
import { isBusy } from "../state/conversation.ts";
import { prefer, usePreferences } from "../state/preferences.ts";
import { setFile, setHunk, type ChangedFile, type Choice } from "../state/review.ts";
import { t } from "../text.ts";
import { Dialog, Empty, IconButton, Loading, Problem } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";
import { useComments } from "./comments.ts";
import { FileDiff } from "./file_diff.tsx";
import { LandBar, Outcome } from "./land_bar.tsx";
import { ChangeTree, inReviewOrder } from "./tree.tsx";
import { useReview } from "./use_review.ts";

interface Place {
  path: string;
  hunk: string | null;
}

/** Every place `j` and `k` stop at: each hunk, and files that have none. */
function stops(files: readonly ChangedFile[]): Place[] {
  return files.flatMap(({ path, hunks }): Place[] => {
    return hunks?.length ? hunks.map((hunk) => ({ path, hunk: hunk.id })) : [{ path, hunk: null }];
  });
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

interface Keys {
  place: Place | null;
  commentOn: string | null;
  help: boolean;
  go: (place: Place) => void;
  commented: () => void;
  setHelp: (open: boolean) => void;
}

/** `j` `k` `a` `x` `c` `?` (UI-27); nothing while somebody types. */
function useKeys(files: readonly ChangedFile[], choice: Choice, onChoice: (choice: Choice) => void, show: (place: Place) => void): Keys {
  const [place, setPlace] = useState<Place | null>(null);
  const [commentOn, setCommentOn] = useState<string | null>(null);
  const [help, setHelp] = useState(false);
  const all = useMemo(() => stops(files), [files]);
  useEffect(() => {
    const mark = (on: boolean): void => {
      const file = files.find((one) => one.path === place?.path);
      if (!place || !file) return;
      onChoice(place.hunk === null ? setFile(choice, file, on) : setHunk(choice, file, place.hunk, on));
    };
    const move = (by: number): void => {
      const at = place ? all.findIndex((stop) => stop.path === place.path && stop.hunk === place.hunk) : by > 0 ? -1 : all.length;
      const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
      if (!next) return;
      setPlace(next);
      show(next);
    };
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
      const acts: Record<string, () => void> = {
        j: () => move(1),
        k: () => move(-1),
        a: () => mark(true),
        x: () => mark(false),
        c: () => setCommentOn(place?.hunk ?? null),
        "?": () => setHelp(true),
      };
      const act = acts[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [all, place, files, choice, onChoice, show]);
  const go = useCallback(
    (next: Place): void => {
      setPlace(next);
      show(next);
    },
    [show],
  );
  return { place, commentOn, help, go, commented: () => setCommentOn(null), setHelp };
}

function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title={t.keys} onClose={onClose}>
      <div className="keys">
        {t.keyList.map(([key, meaning]) => (
          <div key={key} style={{ display: "contents" }}>
            <kbd>{key}</kbd>
            <span>{meaning}</span>
          </div>
        ))}
      </div>
    </Dialog>
  );
}

export default function ReviewPage({ id }: { id: string }) {
  const links = useLinks();
  const [, navigate] = useLocation();
  const { state } = useLive(id);
  const facts = useFacts(id, state.factsVersion);
  const running = isBusy(state) && state.status === "running";
  const review = useReview(id, state.filesVersion);
  const comments = useComments(id);
  const { diffView } = usePreferences();
  const narrow = useMedia("(max-width: 860px)");
  const [ignoreSpace, setIgnoreSpace] = useState(false);
  const [tree, setTree] = useState(false);
  const list = useRef<VirtuosoHandle>(null);
  const files = useMemo(() => inReviewOrder(review.files ?? []), [review.files]);
  const ignored = (review.files?.length ?? 0) - files.length;
  const shown = useRef(files);
  shown.current = files;
  const show = useCallback((place: Place): void => {
    const index = shown.current.findIndex((file) => file.path === place.path);
    if (index >= 0) list.current?.scrollToIndex({ index, align: "start" });
    // Twice: the list must have drawn the file before its hunk can be brought into view.
    const look = (): void => document.querySelector(`[data-hunk="${place.hunk}"]`)?.scrollIntoView({ block: "center" });
    if (place.hunk) requestAnimationFrame(() => requestAnimationFrame(look));
  }, []);
  const keys = useKeys(files, review.choice, review.setChoice, show);
  const drafts = comments.all.filter((comment) => !comment.sent);
  const send = async (): Promise<void> => {
    await api.comment(
      id,
      drafts.map(({ path, side, line, endLine, text }) => ({ path, side, line, end_line: endLine, text })),
    );
    comments.markSent();
    toast(t.commentsSent, { label: t.toChat, run: () => navigate(links.chat(id)) });
  };
  const pick = (path: string): void => {
    keys.go({ path, hunk: files.find((file) => file.path === path)?.hunks?.[0]?.id ?? null });
    setTree(false);
  };
  const view = narrow ? "unified" : diffView;
  return (
    <>
      <header className="head">
        <SidebarButton />
        <Link className="button icon plain" href={links.chat(id)} aria-label={t.toChat} title={t.toChat}>
          <ArrowLeft size={18} aria-hidden="true" />
        </Link>
        <div className="head-title">
          <h1 className="clip">{t.reviewOf(facts?.title || t.untitled)}</h1>
          {running && <span className="badge accent">{t.working}</span>}
        </div>
        <span className="phone-only">
          <IconButton icon={ListTree} label={t.changedFiles} onClick={() => setTree(true)} />
        </span>
        <span className="wide-only" role="group" aria-label={t.diffView} style={{ display: "flex", gap: "0.25rem" }}>
          <IconButton icon={Rows2} label={t.unified} pressed={diffView === "unified"} onClick={() => prefer({ diffView: "unified" })} />
          <IconButton icon={Columns2} label={t.split} pressed={diffView === "split"} onClick={() => prefer({ diffView: "split" })} />
        </span>
        <IconButton icon={Pilcrow} label={t.ignoreSpace} pressed={ignoreSpace} onClick={() => setIgnoreSpace(!ignoreSpace)} />
        <span className="wide-only">
          <IconButton icon={Keyboard} label={t.keys} onClick={() => keys.setHelp(true)} />
        </span>
      </header>
      {review.problem && <Problem>{review.problem}</Problem>}
      {review.files === null && !review.problem && <Loading label={t.loading} />}
      {review.files !== null && (
        <div className="review">
          {files.length > 0 && (
            <ChangeTree
              files={files}
              ignored={ignored}
              choice={review.choice}
              current={keys.place?.path ?? null}
              open={tree}
              onChoice={review.setChoice}
              onPick={pick}
              onClose={() => setTree(false)}
            />
          )}
          <div className="diffs">
            <Outcome conversation={id} review={review} files={files} />
            {files.length === 0 ? (
              <Empty icon={PartyPopper} title={t.nothingToReview}>
                <p>{ignored > 0 ? t.ignoredFiles(ignored) : t.nothingToReviewText}</p>
                <Link className="button" href={links.chat(id)}>
                  {t.toChat}
                </Link>
              </Empty>
            ) : (
              <Virtuoso
                ref={list}
                className="diff-list"
                data={files}
                computeItemKey={(_, file) => file.path}
                increaseViewportBy={{ top: 300, bottom: 500 }}
                defaultItemHeight={320}
                components={{ Footer: () => <div className="spacer" /> }}
                itemContent={(_, file) => (
                  <div className="file-slot">
                    <FileDiff
                      conversation={id}
                      file={file}
                      choice={review.choice}
                      onChoice={review.setChoice}
                      comments={comments}
                      view={view}
                      ignoreSpace={ignoreSpace}
                      currentHunk={keys.place?.path === file.path ? keys.place.hunk : null}
                      commentOn={keys.place?.path === file.path ? keys.commentOn : null}
                      onCommented={keys.commented}
                    />
                  </div>
                )}
              />
            )}
            {(files.length > 0 || drafts.length > 0) && (
              <LandBar review={review} files={files} drafts={drafts.length} running={running} onSendComments={() => void send().catch(complain)} />
            )}
          </div>
        </div>
      )}
      {keys.help && <Help onClose={() => keys.setHelp(false)} />}
    </>
  );
}
