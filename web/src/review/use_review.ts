/** The state of one review: what changed, what is chosen, what a landing answered. Not here: drawing. */

import { useCallback, useEffect, useMemo, useRef, useState, type RefObject } from "react";
import { api, ApiError } from "../api/client.ts";
import type { Conflict, FoldedRow, GitRepository, Landing, LandingPlan, Refused, Taken } from "../api/types.ts";
import { keptChoice, reviewed, type Reviewed } from "../state/kept_choice.ts";
import {
  changedFiles,
  firstChoice,
  keptBeside,
  landRequest,
  seenOf,
  hasMoved,
  isLandedAlready,
  NOTHING_BESIDE,
  type Beside,
  type ChangedFile,
  type Choice,
} from "../state/review.ts";
import { t } from "../text.ts";
import { useLeft } from "../ui/left.ts";
import { complain, toast } from "../ui/toasts.tsx";

const LOOK_MS = 2_000;
const NO_GIT: readonly GitRepository[] = [];
const NONE_FOLDED: readonly FoldedRow[] = [];

/** Whether what lands is to be a commit, with which words, and on which git branch; "" = the checked-out one. */
export interface CommitChoice {
  wanted: boolean;
  message: string;
  branch: string;
}

const NO_COMMIT: CommitChoice = { wanted: false, message: "", branch: "" };

export interface Review {
  files: readonly ChangedFile[] | null;
  choice: Choice;
  setChoice: (next: Choice) => void;
  problem: string | null;
  /** Name of the landing plan of all that changed. */
  plan: string | null;
  /** What happened in git, by repository; whether a landing brings commits. */
  git: readonly GitRepository[];
  commits: boolean;
  /** What stays on the branch by itself; and what of it, and of git's settings, is ticked to land. */
  folded: readonly FoldedRow[];
  beside: Beside;
  setBeside: (next: Beside) => void;
  landCommits: () => Promise<boolean>;
  /** Null where the directory is in no git repository. */
  commit: CommitChoice | null;
  setCommit: (next: CommitChoice) => void;
  /** Changed since it was looked at; empty when nothing did. */
  moved: readonly string[];
  refused: readonly Refused[];
  landed: Landing | null;
  busy: boolean;
  /** What was asked for last has no answer: the connection broke. */
  answerLost: boolean;
  /** As all of these: whether it was done. */
  land: () => Promise<boolean>;
  force: (path: string) => Promise<boolean>;
  /** Land one file as somebody decided its conflicting places. */
  resolve: (conflict: Conflict, taken: Taken[]) => Promise<boolean>;
  undo: (force?: boolean) => Promise<boolean>;
  discard: (paths?: string[]) => Promise<boolean>;
  leaveOut: (path: string) => void;
}

/** What was chosen, and for what; who comes back finds it, by whatever way. */
interface Chosen {
  choice: Choice;
  files: readonly Reviewed[];
  beside: Beside;
  commit: CommitChoice;
}

interface Loaded {
  files: readonly ChangedFile[];
  plan: LandingPlan;
  git: readonly GitRepository[];
  folded: readonly FoldedRow[];
  /** What the server said, to know whether it says the same again. */
  said: string;
}

/**
 * Look again when what would land is no longer what was loaded: somebody edited the directory (UI-90).
 *
 * Asked while the page is seen, and never for more than a twentieth of the time.
 */
function useDrift(conversation: string, loaded: RefObject<Loaded | null>, load: () => Promise<void>): void {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let gone = false;
    const look = async (): Promise<void> => {
      clearTimeout(timer);
      const began = performance.now();
      try {
        const known = loaded.current?.plan.plan;
        if (document.visibilityState === "visible" && known && (await api.landingPlan(conversation)).plan !== known && !gone) await load();
      } catch {
        // the next look, or whatever the person does, says what is wrong
      }
      if (!gone) timer = setTimeout(() => void look(), Math.max(LOOK_MS, 20 * (performance.now() - began)));
    };
    const now = (): void => void look();
    timer = setTimeout(now, LOOK_MS);
    addEventListener("focus", now);
    return () => {
      gone = true;
      clearTimeout(timer);
      removeEventListener("focus", now);
    };
  }, [conversation, loaded, load]);
}

export function useReview(conversation: string, version: number): Review {
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [left, keepAs] = useLeft<Chosen>("chosen", `review ${conversation}`);
  const [choice, setChoice] = useState<Choice>(left?.choice ?? {});
  const [beside, setBeside] = useState<Beside>(left?.beside ?? NOTHING_BESIDE);
  const [commit, setCommit] = useState<CommitChoice>(left?.commit ?? NO_COMMIT);
  const [problem, setProblem] = useState<string | null>(null);
  const [moved, setMoved] = useState<readonly string[]>([]);
  const [refused, setRefused] = useState<readonly Refused[]>([]);
  const [landed, setLanded] = useState<Landing | null>(null);
  const [busy, setBusy] = useState(false);
  /** A landing was asked for whose answer never came. */
  const [answerLost, setAnswerLost] = useState(false);
  const before = useRef<Loaded | null>(null);
  keepAs(() => (before.current ? { choice, files: reviewed(before.current.files), beside, commit } : left));

  const load = useCallback(async (): Promise<void> => {
    try {
      const { diff, plan } = await api.review(conversation);
      const files = changedFiles(diff, plan);
      const old = before.current;
      const said = JSON.stringify([diff, plan]);
      setProblem(null);
      // The same again: what was loaded for it, file by file, stays.
      if (old?.said === said) return;
      before.current = { files, plan, git: diff.git ?? [], folded: diff.folded ?? [], said };
      setLoaded(before.current);
      setBeside((now) => keptBeside(now, diff));
      const looked = old?.files ?? left?.files;
      setChoice((now) => (looked ? keptChoice(now, looked, files) : firstChoice(files)));
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  }, [conversation, left]);
  useEffect(() => void load(), [load, version]);
  useDrift(conversation, before, load);

  const work = useCallback(
    async (todo: () => Promise<void>): Promise<boolean> => {
      setBusy(true);
      setRefused([]);
      setMoved([]);
      setAnswerLost(false);
      try {
        await todo();
        return true;
      } catch (error) {
        if (error instanceof ApiError && error.status === 0) setAnswerLost(true);
        if (error instanceof ApiError && isLandedAlready(error)) toast(t.staleText);
        else if (error instanceof ApiError && error.refused.some(hasMoved)) setMoved(error.refused.filter(hasMoved).map((row) => row.path));
        else if (error instanceof ApiError && error.refused.length > 0) setRefused(error.refused);
        else complain(error);
        return false;
      } finally {
        await load();
        setBusy(false);
      }
    },
    [load],
  );

  const land = (): Promise<boolean> =>
    work(async () => {
      if (!loaded) return;
      const wanted = landRequest(loaded.files, choice, beside);
      const asCommit = commit.wanted ? { commit: { message: commit.message.trim() || null, branch: commit.branch.trim() || null } } : {};
      setLanded(await api.land(conversation, { ...wanted, seen: seenOf(loaded.plan, wanted.paths), ...asCommit }));
      setCommit({ ...commit, message: "" });
    });

  const force = (path: string): Promise<boolean> =>
    work(async () => {
      if (loaded) setLanded(await api.land(conversation, { paths: [path], accept: [path], force: true, seen: seenOf(loaded.plan, [path]) }));
    });

  const resolve = ({ path, plan }: Conflict, taken: Taken[]): Promise<boolean> =>
    work(async () => setLanded(await api.land(conversation, { paths: [path], accept: [path], plan, resolved: { [path]: taken } })));

  const landCommits = (): Promise<boolean> =>
    work(async () => {
      if (loaded) setLanded(await api.land(conversation, { partial: true, seen: seenOf(loaded.plan) }));
    });

  const undo = (anyway = false): Promise<boolean> =>
    work(async () => {
      if (!landed) return;
      await api.undo(landed.id, anyway);
      setLanded(null);
      toast(t.undone);
    });

  const discard = (paths?: string[]): Promise<boolean> =>
    work(async () => {
      await api.discard(conversation, paths);
      toast(t.discarded);
    });

  const leaveOut = (path: string): void => {
    const { [path]: _, ...others } = choice;
    setChoice(others);
    setRefused(refused.filter((row) => row.path !== path));
  };

  const files = useMemo(() => loaded?.files ?? null, [loaded]);
  const plan = loaded?.plan.plan ?? null;
  const git = loaded?.git ?? NO_GIT;
  const folded = loaded?.folded ?? NONE_FOLDED;
  const commits = loaded?.plan.commits ?? false;
  return { files, choice, setChoice, problem, plan, git, commits, folded, beside, setBeside, landCommits, commit: loaded?.plan.in_git ? commit : null, setCommit, moved, refused, landed, busy, answerLost, land, force, resolve, undo, discard, leaveOut };
}
