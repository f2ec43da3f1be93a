/** The dialog of a new conversation in the developer face: where, with what, how (UI-9). */

import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { api } from "../api/client.ts";
import type { Named, NewConversation, WorkspaceRow } from "../api/types.ts";
import { useLinks } from "../app/place.tsx";
import { refreshSessions } from "../sessions/list.ts";
import { t } from "../text.ts";
import { Dialog, Problem } from "../ui/kit.tsx";

const SWITCHES = [
  ["enable_approval", t.approval, t.approvalHint],
  ["enable_plan_mode", t.plan, t.planHint],
  ["enable_tracing", t.tracing, t.tracingHint],
  ["enable_teams", t.teams, t.teamsHint],
  ["enable_thinking", t.thinking, t.thinkingHint],
] as const;

export default function NewChat({ onClose }: { onClose: () => void }) {
  const links = useLinks();
  const [, go] = useLocation();
  const [presets, setPresets] = useState<Named[]>([]);
  const [workspaces, setWorkspaces] = useState<WorkspaceRow[]>([]);
  const [model, setModel] = useState("");
  const [wanted, setWanted] = useState<NewConversation>({ enable_tracing: true });
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    const fail = (error: unknown): void => setProblem(error instanceof Error ? error.message : String(error));
    api.presets().then(setPresets, fail);
    api.workspaces().then(setWorkspaces, fail);
    api.health().then((health) => setModel(health.model ?? ""), fail);
  }, []);
  const begin = async (): Promise<void> => {
    setBusy(true);
    try {
      const made = await api.begin(wanted);
      refreshSessions();
      onClose();
      go(links.chat(made.conversation_id));
    } catch (error) {
      setBusy(false);
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const change = (part: NewConversation): void => setWanted({ ...wanted, ...part });
  return (
    <Dialog
      title={t.newChat}
      onClose={onClose}
      foot={
        <>
          <button type="button" className="button" onClick={onClose}>
            {t.cancel}
          </button>
          <button type="button" className="button primary" disabled={busy} onClick={() => void begin()}>
            {t.begin}
          </button>
        </>
      }
    >
      {problem && <Problem>{problem}</Problem>}
      <label className="field">
        <span>{t.workspace}</span>
        <select className="input" value={wanted.workspace ?? ""} onChange={(event) => change({ workspace: event.target.value || null })}>
          {workspaces.map((row) => (
            <option key={row.name ?? ""} value={row.name ?? ""}>
              {row.name ?? t.defaultWorkspace} — {row.path}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        <span>{t.preset}</span>
        <select className="input" value={wanted.preset ?? ""} onChange={(event) => change({ preset: event.target.value || null })}>
          <option value="">{t.asConfigured}</option>
          {presets.map((row) => (
            <option key={row.name} value={row.name}>
              {row.name}
            </option>
          ))}
        </select>
        <span className="hint">{presets.find((row) => row.name === wanted.preset)?.description ?? t.presetHint}</span>
      </label>
      <label className="field">
        <span>{t.model}</span>
        <input className="input mono" placeholder={model} value={wanted.model ?? ""} onChange={(event) => change({ model: event.target.value.trim() || null })} />
      </label>
      <fieldset style={{ display: "grid", gap: "0.6rem", margin: 0, padding: 0, border: 0 }}>
        <legend className="hidden">{t.options}</legend>
        {SWITCHES.map(([name, label, hint]) => (
          <label key={name} className="check">
            <input type="checkbox" checked={wanted[name] === true} onChange={(event) => change({ [name]: event.target.checked })} />
            <span>
              {label} <span className="muted" style={{ fontSize: "var(--step--1)" }}>– {hint}</span>
            </span>
          </label>
        ))}
        {wanted.enable_thinking && (
          <label className="field">
            <span>{t.effort}</span>
            <select
              className="input"
              value={wanted.thinking_effort ?? ""}
              onChange={(event) => change({ thinking_effort: (event.target.value || null) as NewConversation["thinking_effort"] })}
            >
              <option value="">{t.asConfigured}</option>
              <option value="high">high</option>
              <option value="max">max</option>
            </select>
          </label>
        )}
      </fieldset>
    </Dialog>
  );
}
