/** The review of a conversation's branch: tree, diffs, keys, land bar (UI-26 … UI-30). */

import { ArrowLeft, Columns2, Keyboard, ListTree, PartyPopper, Pilcrow, Rows2 } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { api } from "../api/client.ts";
import type { Refused } from "../api/types.ts";
import { SidebarButton } from "../app/shell.tsx";
import { useFace, useLinks } from "../app/place.tsx";
import { useFacts, useLive } from "../chat/use_live.ts";
import { isBusy } from "../state/conversation.ts";
import { prefer, usePreferences } from "../state/preferences.ts";
import type { ChangedFile } from "../state/review.ts";
import { seenTitle } from "../state/hidden_marks.ts";
import { t } from "../text.ts";
import { Dialog, Empty, IconButton, Loading, Problem } from "../ui/kit.tsx";
import { useMedia } from "../ui/media.ts";
import { complain, toast } from "../ui/toasts.tsx";
import { useKeptFocus } from "../ui/kept_focus.ts";
import { useLeft } from "../ui/left.ts";
import type { ListHandle } from "../ui/window_list.tsx";
import { LostComments, typedIn } from "./comment_box.tsx";
import { useComments } from "./comments.ts";
import { ConflictDialog } from "./conflict.tsx";
import { useContents } from "./contents.ts";
import { DiffList, followed, formAt, type Form } from "./diff_list.tsx";
import { useKeys, type Place } from "./keys.ts";
import { Elsewhere, useElsewhere } from "./elsewhere.tsx";
import { Folded } from "./folded.tsx";
import { GitStory } from "./git_story.tsx";
import { HowFar, LandBar, Outcome } from "./land_bar.tsx";
import { hashNow } from "../ui/browser.ts";
import { ChangeTree, inReviewOrder } from "./tree.tsx";
import { useReview } from "./use_review.ts";
import { useViewed } from "./viewed.ts";

/** Where the focus goes from what is there no more. */
const FOCUS = [".hunk-head.current", ".window-list"];
const NOTHING: readonly ChangedFile[] = [];

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

/** Changed files in the page's order, with hunks that were asked for one by one. */
function useFiles(conversation: string, all: readonly ChangedFile[] | null) {
  const ordered = useMemo(() => inReviewOrder(all ?? NOTHING), [all]);
  const { contents, known } = useContents(conversation, ordered);
  const files = useMemo(
    () =>
      ordered.map((file) => {
        const hunks = file.hunks ?? known.get(file.path)?.hunks ?? null;
        return hunks === file.hunks ? file : { ...file, hunks };
      }),
    [ordered, known],
  );
  return { files, known, contents };
}

/** Go once to the place that the address names: `#/src/a.py:12`. */
function useAddressedPlace(files: readonly ChangedFile[], go: (place: Place) => void): void {
  // Who comes back is where it was left, not where the address led.
  const [left, keepAs] = useLeft<boolean>("addressed");
  const gone = useRef(left !== null);
  keepAs(() => true);
  useEffect(() => {
    if (gone.current || files.length === 0) return;
    gone.current = true;
    const [, path = "", line = ""] = /^(.+?)(?::(\d+))?$/s.exec(hashNow()) ?? [];
    const file = files.find((one) => one.path === path);
    if (!file) return;
    const number = Number(line);
    const hunk = file.hunks?.find((one) => number >= one.new_start && number < one.new_start + Math.max(one.new_lines, 1));
    go({ path, hunk: (hunk ?? file.hunks?.[0])?.id ?? null });
  }, [files, go]);
}

export default function ReviewPage({ id }: { id: string }) {
  const links = useLinks();
  const [, navigate] = useLocation();
  const { state, ready } = useLive(id);
  // A history that is read back is no change: what it led to is asked for once.
  const facts = useFacts(id, ready ? state.factsVersion : 0);
  const running = isBusy(state) && state.status === "running";
  // A history that comes while the review is fetched is none either: what changed in between is seen by the next look.
  const known = useRef<number | null>(null);
  if (ready) known.current ??= state.filesVersion;
  const review = useReview(id, state.filesVersion - (known.current ?? state.filesVersion));
  const elsewhere = useElsewhere(id, review);
  const comments = useComments(id);
  const viewed = useViewed(id);
  const face = useFace();
  const { diffView } = usePreferences();
  const narrow = useMedia("(max-width: 860px)");
  const [ignoreSpace, setIgnoreSpace] = useState(false);
  const [tree, setTree] = useState(false);
  const [form, setForm] = useState<Form | null>(null);
  const [deciding, setDeciding] = useState<Refused | null>(null);
  const list = useRef<ListHandle>(null);
  const root = useRef<HTMLDivElement>(null);
  const { files, known: texts, contents } = useFiles(id, review.files);
  const show = useCallback((place: Place): void => {
    requestAnimationFrame(() => list.current?.show(place.path, place.hunk ? `hunk:${place.hunk}` : null));
  }, []);
  const commentAt = useCallback(
    (place: Place): void => {
      const file = files.find((one) => one.path === place.path);
      if (file) setForm(formAt(file, place.hunk));
    },
    [files],
  );
  // The agent may change what somebody writes about: the form goes along, and no word is lost.
  useEffect(() => {
    if (!form || files.length === 0) return;
    const now = followed(form, files);
    const text = typedIn(form.id);
    if (now === null && text) {
      const { id: formId, path, side, line, endLine, quote } = form;
      comments.put({ id: formId, path, side, line, endLine, text, quote, sent: false });
      toast(t.draftKept);
    }
    setForm(now);
  }, [files]);
  const keys = useKeys({ files, choice: review.choice, onChoice: review.setChoice, show, onComment: commentAt, viewed, root });
  useAddressedPlace(files, keys.go);
  useKeptFocus(root, review.files !== null, FOCUS);
  const isBeside = review.beside.include.length + review.beside.settings.length > 0;
  const drafts = comments.all.filter((comment) => !comment.sent);
  const send = async (): Promise<void> => {
    const asked = await api.comment(
      id,
      drafts.map(({ path, side, line, endLine, text }) => ({ path, side, line, end_line: endLine, text })),
    );
    comments.markSent(asked.turn_id);
    toast(t.commentsSent, { label: t.toChat, run: () => navigate(links.chat(id)) });
  };
  const pick = (path: string): void => {
    keys.go({ path, hunk: files.find((file) => file.path === path)?.hunks?.[0]?.id ?? null });
    setTree(false);
  };
  return (
    <>
      <header className="head">
        <SidebarButton />
        <Link className="button icon plain" href={links.chat(id)} aria-label={t.toChat} title={t.toChat}>
          <ArrowLeft size={18} aria-hidden="true" />
        </Link>
        <div className="head-title">
          <h1 className="clip">{t.reviewOf(seenTitle(facts?.title))}</h1>
          {running && <span className="badge accent">{t.working}</span>}
        </div>
        <span className="phone-only">
          <IconButton icon={ListTree} label={t.changedFiles} onClick={() => setTree(true)} />
        </span>
        <span className="wide-only segmented" role="group" aria-label={t.diffView}>
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
        <div ref={root} className="review">
          {files.length > 0 && (
            <ChangeTree
              files={files}
              choice={review.choice}
              viewed={viewed}
              current={keys.place?.path ?? null}
              open={tree}
              onChoice={review.setChoice}
              onPick={pick}
              onClose={() => setTree(false)}
            />
          )}
          {tree && <button type="button" className="scrim narrow-only" aria-label={t.close} onClick={() => setTree(false)} />}
          <div className="diffs">
            <Elsewhere landing={elsewhere} answerLost={review.answerLost} />
            <Outcome review={review} onDecide={setDeciding} />
            <GitStory review={review} files={files.length} />
            <Folded review={review} />
            <LostComments conversation={id} comments={comments} files={files} />
            {files.length === 0 && drafts.length === 0 && <HowFar landing={state.landing} />}
            {files.length === 0 ? (
              <Empty icon={PartyPopper} title={t.nothingToReview}>
                <p>{face === "dev" ? t.nothingToReviewText : t.nothingToLookAt}</p>
                <Link className="button" href={links.chat(id)}>
                  {t.toChat}
                </Link>
              </Empty>
            ) : (
              <DiffList
                conversation={id}
                files={files}
                known={texts}
                contents={contents}
                choice={review.choice}
                onChoice={review.setChoice}
                comments={comments}
                view={narrow ? "unified" : diffView}
                ignoreSpace={ignoreSpace}
                place={keys.place}
                form={form}
                onForm={setForm}
                handle={list}
                onDecide={(path) => setDeciding({ path, reason: "" })}
                viewed={viewed}
              />
            )}
            {(files.length > 0 || drafts.length > 0 || isBeside) && (
              <LandBar conversation={id} review={review} files={files} drafts={drafts.length} open={comments.all.filter((comment) => !comment.resolved).length} running={running} landing={state.landing} viewed={files.filter(viewed.has).length} onSendComments={() => void send().catch(complain)} />
            )}
          </div>
        </div>
      )}
      {deciding && (
        <ConflictDialog
          conversation={id}
          refused={deciding}
          onClose={() => setDeciding(null)}
          onDecided={review.resolve}
          onForce={() => {
            setDeciding(null);
            void review.force(deciding.path);
          }}
          onLeaveOut={() => {
            setDeciding(null);
            review.leaveOut(deciding.path);
          }}
        />
      )}
      <div className="hidden" aria-live="polite" data-testid="said">
        {keys.said}
      </div>
      {keys.help && <Help onClose={() => keys.setHelp(false)} />}
    </>
  );
}
