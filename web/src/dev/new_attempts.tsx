/** The dialog that begins several attempts at one task. */

import { useState } from "react";
import { api } from "../api/client.ts";
import { t } from "../text.ts";
import { Dialog, Problem } from "../ui/kit.tsx";

const lines = (text: string): string[] => text.split("\n").map((line) => line.trim()).filter(Boolean);

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
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const begin = async (): Promise<void> => {
    setBusy(true);
    try {
      await api.beginAttempts(conversation, { task: task.trim(), attempts: count, checks: lines(checks), models: lines(models) });
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
          <button type="button" className="button primary" disabled={busy || !task.trim()} onClick={() => void begin()}>
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
      <label className="field">
        <span>{t.modelsWord}</span>
        <textarea className="input mono" rows={2} value={models} onChange={(event) => setModels(event.target.value)} />
        <span className="hint">{t.modelsHint}</span>
      </label>
    </Dialog>
  );
}
