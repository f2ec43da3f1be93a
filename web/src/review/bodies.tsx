/** What is shown of a file that has no lines to compare: pictures, binaries, deleted and huge files (UI-26). */

import { useEffect, useMemo, useState } from "react";
import { api } from "../api/client.ts";
import { BranchImage } from "../files/image.tsx";
import type { Body as What, Known } from "../state/diff_rows.ts";
import { hunkData } from "../state/hunks.ts";
import { longChanges } from "../state/long_lines.ts";
import type { ChangedFile } from "../state/review.ts";
import { size } from "../state/words.ts";
import { seenName } from "../state/hidden_marks.ts";
import { t } from "../text.ts";
import { saveBlob } from "../ui/browser.ts";
import { Problem } from "../ui/kit.tsx";
import { complain } from "../ui/toasts.tsx";
import type { Contents } from "./contents.ts";

const HUGE_LINES = 500;
const LINE_BYTES = 400;
const MOST_LONG = 50;
const MOST_NAMES = 500;

interface BodyProps {
  conversation: string;
  file: ChangedFile;
  what: What;
  known: Known | null;
  contents: Contents;
  onLarge: () => void;
  onGone: () => void;
}

/** Where the old version of a file lies: renamed files were elsewhere. */
function oldPath(file: ChangedFile): string | null {
  return file.kind === "create" ? null : (file.renamedFrom ?? file.path);
}

function useOldSize(conversation: string, file: ChangedFile): number | null {
  const [bytes, setBytes] = useState<number | null>(null);
  const path = oldPath(file);
  useEffect(() => {
    if (!path) return;
    let here = true;
    api.oldSize(conversation, path).then(
      (found) => here && setBytes(found),
      () => undefined, // only the new size is shown
    );
    return () => {
      here = false;
    };
  }, [conversation, path]);
  return bytes;
}

function Sizes({ conversation, file }: { conversation: string; file: ChangedFile }) {
  const before = useOldSize(conversation, file);
  return <div className="file-foot">{t.binaryText(before === null ? null : size(before), size(file.size ?? 0))}</div>;
}

function Images({ conversation, file }: { conversation: string; file: ChangedFile }) {
  const before = useOldSize(conversation, file);
  const old = oldPath(file);
  return (
    <div className={`images ${old ? "" : "one"}`}>
      {old && (
        <figure>
          <figcaption>
            {t.before} {before !== null && <span className="muted">{size(before)}</span>}
          </figcaption>
          <BranchImage conversation={conversation} path={old} version="old" />
        </figure>
      )}
      <figure>
        <figcaption>
          {t.after} <span className="muted">{size(file.size ?? 0)}</span>
        </figcaption>
        <BranchImage conversation={conversation} path={file.path} key={`${file.path}:${file.size}`} />
      </figure>
    </div>
  );
}

function Loading({ file, contents }: { file: ChangedFile; contents: Contents }) {
  useEffect(() => contents.wantHunks(file), [file, contents]);
  return (
    <div className="file-foot" role="status">
      <span className="hidden">{t.loading}</span>
      <div className="skeleton" style={{ width: "60%" }} />
    </div>
  );
}

/** Hand a version of a file to the browser's downloads. */
async function save(conversation: string, path: string, version?: "old"): Promise<void> {
  saveBlob(await api.download(conversation, path, version), `${version ? "before-" : ""}${path.split("/").pop() ?? "file"}`);
}

function Downloads({ conversation, file }: { conversation: string; file: ChangedFile }) {
  const old = oldPath(file);
  return (
    <span className="actions">
      {old && (
        <button type="button" className="button small" onClick={() => void save(conversation, old, "old").catch(complain)}>
          {t.downloadBefore}
        </button>
      )}
      {file.kind !== "delete" && (
        <button type="button" className="button small" onClick={() => void save(conversation, file.path).catch(complain)}>
          {t.downloadAfter}
        </button>
      )}
    </span>
  );
}

interface Beginning {
  before: string | null;
  after: string;
}

/** What cannot be compared: said, with the beginnings of both versions on demand. */
function Huge({ conversation, file }: { conversation: string; file: ChangedFile }) {
  const [count, setCount] = useState(0);
  const [found, setFound] = useState<Beginning | null>(null);
  const old = oldPath(file);
  const more = (): void => {
    const wanted = count + HUGE_LINES;
    Promise.all([old ? api.beginning(conversation, old, wanted * LINE_BYTES, "old") : null, api.beginning(conversation, file.path, wanted * LINE_BYTES)]).then(
      ([before, after]) => {
        const cut = (text: string): string => text.split("\n").slice(0, wanted).join("\n");
        setFound({ before: before === null ? null : cut(before), after: cut(after) });
        setCount(wanted);
      },
      complain,
    );
  };
  return (
    <>
      <div className="file-foot with-button">
        <span>
          {t.hugeText(size(file.size ?? 0))} {t.tickItself}
        </span>
        <button type="button" className="button small" onClick={more}>
          {count === 0 ? t.firstLines(HUGE_LINES) : t.moreLines(HUGE_LINES)}
        </button>
        <Downloads conversation={conversation} file={file} />
      </div>
      {found && (
        <div className={`beginnings ${found.before === null ? "one" : ""}`}>
          {found.before !== null && (
            <section>
              <h3>{t.before}</h3>
              <pre tabIndex={0}>{found.before}</pre>
            </section>
          )}
          <section>
            <h3>{t.after}</h3>
            <pre tabIndex={0}>{found.after}</pre>
          </section>
        </div>
      )}
    </>
  );
}

/** Changed lines that are too long to be drawn: where each differs. */
function LongLines({ conversation, file, known }: { conversation: string; file: ChangedFile; known: Known | null }) {
  const changes = useMemo(() => longChanges((file.hunks ?? known?.hunks ?? []).map(hunkData)), [file, known]);
  const part = (kind: "del" | "ins", text: string, more: number) =>
    text === "" ? null : (
      <pre className={kind} tabIndex={0}>
        {kind === "del" ? "− " : "+ "}
        {text}
        {more > 0 && <span className="muted"> {t.moreCharacters(more)}</span>}
      </pre>
    );
  return (
    <div className="long-lines">
      <div className="file-foot with-button">
        <span>
          {t.longText} {t.tickItself}
        </span>
        <Downloads conversation={conversation} file={file} />
      </div>
      {changes.slice(0, MOST_LONG).map((change, at) => (
        <section key={at}>
          <p className="muted">{t.longPlace(change.line, change.equal + 1)}</p>
          {part("del", change.removed, change.removedMore)}
          {part("ins", change.added, change.addedMore)}
        </section>
      ))}
      {changes.length > MOST_LONG && <p className="file-foot">{t.moreChangedLines(changes.length - MOST_LONG)}</p>}
    </div>
  );
}

function Directory({ file }: { file: ChangedFile }) {
  return (
    <details className="file-foot">
      <summary>{t.directoryDeleted(file.inside.length)}</summary>
      <ul className="mono">
        {file.inside.slice(0, MOST_NAMES).map((path) => (
          <li key={path}>{seenName(path.slice(1))}</li>
        ))}
      </ul>
      {file.inside.length > MOST_NAMES && <p>{t.andMore(file.inside.length - MOST_NAMES)}</p>}
    </details>
  );
}

/** Where a link leads, before and after. */
export function linkWords(file: ChangedFile): string {
  const now = file.target ?? "";
  return file.oldTarget === null ? t.linkTo(now) : t.linkMoved(file.oldTarget, now);
}

/** Permissions in words: what somebody may do now that nobody could, or no longer. */
export function modeWords(file: ChangedFile): string {
  const [old, now] = [file.oldMode ?? 0, file.mode ?? 0];
  if ((old & 0o111) !== 0 && (now & 0o111) === 0) return t.noLongerRuns;
  return (old & 0o111) === 0 && (now & 0o111) !== 0 ? t.nowRuns : t.modeIs(octal(old), octal(now));
}

function octal(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, "0");
}

export function Body({ conversation, file, what, known, contents, onLarge, onGone }: BodyProps) {
  switch (what) {
    case "problem":
      return <Problem>{known?.problem}</Problem>;
    case "loading":
      return <Loading file={file} contents={contents} />;
    case "nothing":
      return <div className="file-foot">{file.renamedFrom ? t.onlyRenamed : file.kind === "create" ? t.emptyFile : t.noTextChange}</div>;
    case "special":
      return <div className="file-foot">{file.type === "symlink" ? linkWords(file) : t.isA(file.type)}</div>;
    case "mode":
      return <div className="file-foot">{modeWords(file)}</div>;
    case "directory":
      return <Directory file={file} />;
    case "huge":
      return <Huge conversation={conversation} file={file} />;
    case "long":
      return <LongLines conversation={conversation} file={file} known={known} />;
    case "binary":
      return <Sizes conversation={conversation} file={file} />;
    case "image":
      return <Images conversation={conversation} file={file} />;
    case "large":
      return (
        <div className="file-foot with-button">
          <span>{t.largeText(file.added, file.removed)}</span>
          <button type="button" className="button small" onClick={onLarge}>
            {t.showLarge}
          </button>
        </div>
      );
    case "deleted":
      return (
        <div className="file-foot with-button">
          <span>{t.willBeDeleted}</span>
          <button type="button" className="button small" onClick={onGone}>
            {t.showContent}
          </button>
        </div>
      );
  }
}
