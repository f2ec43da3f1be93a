/** What happened in git on the branch, beside the files; and landing commits where no file is left (GI-2, GI-3). */

import { GitBranch } from "lucide-react";
import type { GitRef, GitRepository } from "../api/types.ts";
import { seenName } from "../state/hidden_marks.ts";
import { toggled } from "../state/review.ts";
import { t } from "../text.ts";
import type { Review } from "./use_review.ts";

const short = (ref: string): string => ref.replace(/^refs\/(heads\/)?/, "");

function RefPart({ told }: { told: GitRef }) {
  const words = [told.commits > 0 ? t.commits(told.commits) : "", told.change === "moved" && told.commits > 0 ? "" : t.refChanges[told.change], told.landed ? t.alreadyLanded : ""];
  const line = (
    <>
      <span className="mono">{short(told.ref)}</span>: {words.filter(Boolean).join(", ")}
    </>
  );
  if (told.subjects.length === 0) return <li>{line}</li>;
  return (
    <li>
      <details open={told.subjects.length <= 5}>
        <summary>{line}</summary>
        <ul>
          {told.subjects.map((one) => (
            <li key={one.id}>
              <span className="mono">{one.id}</span> {one.subject}
            </li>
          ))}
        </ul>
      </details>
    </li>
  );
}

/** What lands only when it is accepted by name: ticking it names it (GI-2). */
function Accept({ path, review }: { path: string; review: Review }) {
  const { beside, setBeside } = review;
  return (
    <label className="check">
      <input
        type="checkbox"
        aria-label={t.choose(path.slice(1))}
        checked={beside.settings.includes(path)}
        onChange={() => setBeside({ ...beside, settings: toggled(beside.settings, path) })}
      />
      <span className="mono">{seenName(path.slice(1))}</span>
    </label>
  );
}

function RepositoryPart({ told, review }: { told: GitRepository; review: Review }) {
  const above = told.path.replace(/\/?\.git$/, "").slice(1);
  return (
    <>
      <strong>{above ? t.gitIn(above) : t.git}</strong>
      <ul>
        {told.is_new && (
          <li>
            <Accept path={told.path} review={review} /> {t.newRepository}
          </li>
        )}
        {told.is_removed && <li>{t.removedRepository}</li>}
        {told.refs.map((one) => (
          <RefPart key={one.ref} told={one} />
        ))}
        {told.worktrees.map((one) => (
          <li key={one}>{t.gitWorktree(one)}</li>
        ))}
        {told.settings.map((one) => (
          <li key={one.path}>
            <Accept path={one.path} review={review} /> {one.reasons.join(" ")} {t.staysUnlessAccepted}
          </li>
        ))}
        {told.troubles.map((one) => (
          <li key={one}>{one}</li>
        ))}
      </ul>
    </>
  );
}

export function GitStory({ review, files }: { review: Review; files: number }) {
  if (review.git.length === 0) return null;
  return (
    <section className="problem info" aria-label={t.git} data-testid="git-story">
      <GitBranch size={16} aria-hidden="true" />
      <div>
        {review.git.map((one) => (
          <RepositoryPart key={one.path} told={one} review={review} />
        ))}
        {review.commits && files === 0 && (
          <button type="button" className="button" disabled={review.busy} onClick={() => void review.landCommits()}>
            {t.landCommits}
          </button>
        )}
      </div>
    </section>
  );
}
