/** The dialog that begins several attempts at one task. */

import { useEffect, useState } from "react";
import { api } from "../api/client.ts";
import { t } from "../text.ts";
import { Dialog, Problem } from "../ui/kit.tsx";

const lines = (text: string): string[] => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** Bowerbird's own name among those who attempt. */
export const SELF = "self";

/** The other vendors' agents that can attempt: programs that work on files and can be used now. */
function useRivals(): readonly { name: string; title: string }[] {
  const [rivals, setRivals] = useState<readonly { name: string; title: string }[]>([]);
  useEffect(() => {
    let here = true;
    // Without the list there is Bowerbird, as before.
    api.agents().then((rows) => {
      const able = rows.filter((row) => row.type === "cli" && row.status === "operative" && row.capabilities.includes("file_operations"));
      if (here) setRivals(able.map((row) => ({ name: row.name, title: row.display_name })));
    }, () => undefined);
    return () => {
      here = false;
    };
  }, []);
  return rivals;
}

interface WhoProps {
  rivals: readonly { name: string; title: string }[];
  chosen: readonly string[];
  onChange: (next: readonly string[]) => void;
}

function Who({ rivals, chosen, onChange }: WhoProps) {
  return (
    <fieldset className="field" aria-label={t.whoTries} style={{ margin: 0, padding: 0, border: 0 }}>
      <span aria-hidden="true">{t.whoTries}</span>
      {[{ name: SELF, title: t.ourselves }, ...rivals].map(({ name, title }) => (
        <label key={name} className="check">
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            onChange={(event) => onChange(event.target.checked ? [...chosen, name] : chosen.filter((one) => one !== name))}
          />
          <span>{title}</span>
        </label>
      ))}
      <span className="hint">{t.whoTriesHint}</span>
    </fieldset>
  );
}

interface NewAttemptsProps {
  conversation: string;
  onBegun: () => void;
  onClose: () => void;
}

export function NewAttempts({ conversation, onBegun, onClose }: NewAttemptsProps) {
  const [task, setTask] = useState("");
  const [count, setCount] = useState(3);
  const [checks, setChecks] = useState("");
  const [models, setModels] = useState("");
  const rivals = useRivals();
  const [who, setWho] = useState<readonly string[]>([SELF]);
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const begin = async (): Promise<void> => {
    setBusy(true);
    try {
      await api.beginAttempts(conversation, { task: task.trim(), attempts: count, checks: lines(checks), models: lines(models), agents: [...who] });
      onBegun();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={t.newAttempts}
      onClose={onClose}
      foot={
        <>
          <button type="button" className="button" onClick={onClose}>
            {t.cancel}
          </button>
          <button type="button" className="button primary" disabled={busy || !task.trim() || who.length === 0} onClick={() => void begin()}>
            {t.begin}
          </button>
        </>
      }
    >
      {problem && <Problem>{problem}</Problem>}
      <label className="field">
        <span>{t.task}</span>
        <textarea className="input" rows={3} autoFocus value={task} onChange={(event) => setTask(event.target.value)} />
      </label>
      <label className="field">
        <span>{t.howMany}</span>
        <input className="input" type="number" min={2} max={8} value={count} onChange={(event) => setCount(Number(event.target.value))} />
      </label>
      <label className="field">
        <span>{t.checksWord}</span>
        <textarea className="input mono" rows={2} placeholder="pytest -q" value={checks} onChange={(event) => setChecks(event.target.value)} />
        <span className="hint">{t.checksHint}</span>
      </label>
      {rivals.length > 0 && (
        <Who
          rivals={rivals}
          chosen={who}
          onChange={(next) => {
            setWho(next);
            setCount((old) => Math.min(8, Math.max(old, next.length)));
          }}
        />
      )}
      <label className="field">
        <span>{t.modelsWord}</span>
        <textarea className="input mono" rows={2} value={models} onChange={(event) => setModels(event.target.value)} />
        <span className="hint">{t.modelsHint}</span>
      </label>
    </Dialog>
  );
}
