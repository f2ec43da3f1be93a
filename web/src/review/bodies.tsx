/** What is shown of a file that has no lines to compare: pictures, binaries, deleted and huge files (UI-26). */

import { useEffect, useState } from "react";
import { api } from "../api/client.ts";
import { BranchImage } from "../files/image.tsx";
import type { Body as What, Known } from "../state/diff_rows.ts";
import type { ChangedFile } from "../state/review.ts";
import { size } from "../state/words.ts";
import { t } from "../text.ts";
import { Problem } from "../ui/kit.tsx";
import type { Contents } from "./contents.ts";

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

export function Body({ conversation, file, what, known, contents, onLarge, onGone }: BodyProps) {
  switch (what) {
    case "problem":
      return <Problem>{known?.problem}</Problem>;
    case "loading":
      return <Loading file={file} contents={contents} />;
    case "nothing":
      return <div className="file-foot">{file.renamedFrom ? t.onlyRenamed : file.kind === "create" ? t.emptyFile : t.noTextChange}</div>;
    case "special":
      return <div className="file-foot">{t.isA(file.type)}</div>;
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
