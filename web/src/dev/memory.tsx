/** What agents remember of a user in a workspace, and how it came to be; an earlier version can count again (UI-35). */

import { Brain } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { api } from "../api/client.ts";
import type { MemoryVersion, WorkspaceRow } from "../api/types.ts";
import { Page } from "../app/page.tsx";
import { linesChanged } from "../state/memory.ts";
import { ago, moment, size } from "../state/words.ts";
import { t } from "../text.ts";
import { Empty } from "../ui/kit.tsx";
import { Markdown } from "../ui/markdown.tsx";
import { complain, toast } from "../ui/toasts.tsx";

interface VersionProps {
  version: MemoryVersion;
  before: MemoryVersion | null;
  onRestore: () => void;
}

function Version({ version, before, onRestore }: VersionProps) {
  const { added, removed } = linesChanged(before?.text ?? "", version.text);
  return (
    <li className="card memory" aria-label={moment(version.at)}>
      <details open={version.current}>
        <summary>
          <strong title={moment(version.at)}>{ago(version.at)}</strong>
          {version.current && <span className="badge ok">{t.countsNow}</span>}
          <span className="muted">{size(version.bytes)}</span>
          <span className="counts">
            <span className="plus">+{added.length}</span> <span className="minus">−{removed.length}</span>
          </span>
        </summary>
        <Markdown text={version.text} />
        {removed.length > 0 && (
          <section>
            <h3>{t.forgotten}</h3>
            <pre tabIndex={0}>{removed.join("\n")}</pre>
          </section>
        )}
        {!version.current && (
          <div className="actions">
            <button type="button" className="button small" onClick={onRestore}>
              {t.restore}
            </button>
          </div>
        )}
      </details>
    </li>
  );
}

export default function MemoryPage() {
  const [places, setPlaces] = useState<WorkspaceRow[]>([]);
  const [place, setPlace] = useState<string | null>(null);
  const [rows, setRows] = useState<MemoryVersion[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    api.workspaces().then(setPlaces, complain);
  }, []);
  const load = useCallback((): void => {
    setProblem(null);
    api.memory(place).then(setRows, (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  }, [place]);
  useEffect(load, [load]);
  const restore = (version: MemoryVersion): void => {
    void api.restoreMemory(version.id, place).then(() => {
      toast(t.restored);
      load();
    }, complain);
  };
  return (
    <Page
      title={t.memory}
      about={t.memoryAbout}
      problem={problem}
      ready={rows !== null}
      actions={
        places.length > 1 && (
          <select className="input choose" aria-label={t.workspace} value={place ?? ""} onChange={(event) => setPlace(event.target.value || null)}>
            {places.map((row) => (
              <option key={row.name ?? ""} value={row.name ?? ""}>
                {row.name ?? t.defaultWorkspace}
              </option>
            ))}
          </select>
        )
      }
    >
      {rows?.length === 0 && (
        <Empty icon={Brain} title={t.noMemory}>
          <p>{t.noMemoryText}</p>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <ol className="landings">
          {rows.map((version, at) => (
            <Version key={version.id} version={version} before={rows[at + 1] ?? null} onRestore={() => restore(version)} />
          ))}
        </ol>
      )}
    </Page>
  );
}
