/** A server without a usable model: said at once, with the three ways to one, each done here (UI-83). */

import { Cpu, HardDriveDownload, KeyRound } from "lucide-react";
import { useState, type FormEvent, type ReactNode } from "react";
import { ApiError } from "../api/client.ts";
import { settingsApi, type ModelFetch, type Setup } from "../api/settings.ts";
import { size } from "../state/words.ts";
import { t } from "../text.ts";
import { Problem } from "../ui/kit.tsx";
import { toast } from "../ui/toasts.tsx";
import { refreshSetup } from "./use_setup.ts";
import "../styles/settings.css";

const OLLAMA = "http://127.0.0.1:11434/v1";
type Way = "key" | "server" | "embedded";

/** What went wrong with a change, each thing on its own line. */
export function said(error: unknown): string[] {
  if (error instanceof ApiError && error.errors.length > 0) return [...error.errors];
  return [error instanceof Error ? error.message : String(error)];
}

/** Shown in place of the first page's ideas, and on the settings page. */
export function NoModel({ setup }: { setup: Setup }) {
  const [way, setWay] = useState<Way>(setup.fetch?.state === "running" ? "embedded" : "key");
  if (!setup.may_change) return <Problem tone="warn">{t.noModelAsk}</Problem>;
  if (setup.locked) {
    return (
      <Problem tone="warn">
        <p>{setup.problem}</p>
        <p className="muted">{setup.locked}</p>
      </Problem>
    );
  }
  const ways: [Way, string, typeof KeyRound][] = [
    ["key", t.wayKey, KeyRound],
    ["server", t.wayServer, Cpu],
    ["embedded", t.wayEmbedded, HardDriveDownload],
  ];
  return (
    <section className="setup card" aria-labelledby="setup-head">
      <h2 id="setup-head">{t.noModel}</h2>
      <p className="muted">{t.noModelText}</p>
      <div className="ways" role="group" aria-label={t.noModel}>
        {ways.map(([name, label, Icon]) => (
          <button key={name} type="button" className="button way" aria-pressed={way === name} onClick={() => setWay(name)}>
            <Icon size={18} aria-hidden="true" />
            {label}
          </button>
        ))}
      </div>
      {way === "key" && <KeyWay setup={setup} />}
      {way === "server" && <ServerWay />}
      {way === "embedded" && <EmbeddedWay setup={setup} />}
      {setup.file && <p className="hint">{t.writtenTo(setup.file)}</p>}
    </section>
  );
}

function WayForm({ values, ready, children }: { values: () => Record<string, unknown>; ready: boolean; children: ReactNode }) {
  const [problems, setProblems] = useState<string[]>([]);
  const [busy, setBusy] = useState(false);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setBusy(true);
    setProblems([]);
    settingsApi
      .change(values())
      .then(
        () => {
          toast(t.modelSet);
          refreshSetup();
        },
        (error: unknown) => setProblems(said(error)),
      )
      .finally(() => setBusy(false));
  };
  return (
    <form onSubmit={submit}>
      {children}
      {problems.map((problem) => (
        <Problem key={problem}>{problem}</Problem>
      ))}
      <button type="submit" className="button primary" disabled={!ready || busy}>
        {t.useThisModel}
      </button>
    </form>
  );
}

function KeyWay({ setup }: { setup: Setup }) {
  const [provider, setProvider] = useState("anthropic");
  const [key, setKey] = useState("");
  const [model, setModel] = useState("");
  const needsModel = provider !== "anthropic";
  const values = (): Record<string, unknown> => ({
    "provider.name": provider,
    [`providers.${provider}.api_key`]: key.trim(),
    ...(model.trim() ? { "provider.model": model.trim() } : {}),
  });
  return (
    <WayForm values={values} ready={key.trim() !== "" && (!needsModel || model.trim() !== "")}>
      <label className="field">
        <span>{t.provider}</span>
        <select className="input" value={provider} onChange={(event) => setProvider(event.target.value)}>
          {setup.providers.map((row) => (
            <option key={row["name"]} value={row["name"]}>
              {row["name"]}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        <span>{t.apiKey}</span>
        <input className="input" type="password" autoComplete="off" value={key} onChange={(event) => setKey(event.target.value)} />
        <span className="hint">{t.apiKeyHint}</span>
      </label>
      <label className="field">
        <span>{t.modelName}</span>
        <input className="input" autoComplete="off" autoCapitalize="none" spellCheck={false} value={model} onChange={(event) => setModel(event.target.value)} />
        <span className="hint">{needsModel ? t.modelNameNeeded : t.modelNameHint}</span>
      </label>
    </WayForm>
  );
}

function ServerWay() {
  const [address, setAddress] = useState(OLLAMA);
  const [model, setModel] = useState("");
  const values = (): Record<string, unknown> => ({
    "provider.name": "ollama",
    "provider.model": model.trim(),
    "providers.ollama.base_url": address.trim(),
  });
  return (
    <WayForm values={values} ready={address.trim() !== "" && model.trim() !== ""}>
      <label className="field">
        <span>{t.serverAddress}</span>
        <input className="input" type="url" inputMode="url" value={address} onChange={(event) => setAddress(event.target.value)} />
        <span className="hint">{t.serverAddressHint}</span>
      </label>
      <label className="field">
        <span>{t.modelName}</span>
        <input className="input" autoComplete="off" autoCapitalize="none" spellCheck={false} placeholder={t.modelExample} value={model} onChange={(event) => setModel(event.target.value)} />
      </label>
    </WayForm>
  );
}

function Fetching({ fetch }: { fetch: ModelFetch }) {
  const share = fetch.total > 0 ? fetch.done / fetch.total : 0;
  const words = fetch.step === "join" ? t.joining : t.downloading(size(fetch.done), size(fetch.total));
  return (
    <>
      <div role="status">
        <progress aria-label={t.wayEmbedded} value={share} max={1} />
        <p className="muted">{words}</p>
      </div>
      <button type="button" className="button" onClick={() => void settingsApi.stopFetch().finally(refreshSetup)}>
        {t.stop}
      </button>
    </>
  );
}

function EmbeddedWay({ setup }: { setup: Setup }) {
  const [small, setSmall] = useState(false);
  const [problems, setProblems] = useState<string[]>([]);
  const { fetch, embedded } = setup;
  const begin = (): void => {
    setProblems([]);
    settingsApi.fetchModel(small).then(refreshSetup, (error: unknown) => setProblems(said(error)));
  };
  if (fetch?.state === "running") return <Fetching fetch={fetch} />;
  if (embedded !== "ready" && embedded !== "absent") return <Problem tone="warn">{t.embeddedCannot(embedded ?? "")}</Problem>;
  return (
    <>
      <p>{t.embeddedText}</p>
      <fieldset className="choice">
        <legend className="hidden">{t.size}</legend>
        {[false, true].map((value) => (
          <label key={String(value)} className="check">
            <input type="radio" name="embedded-size" checked={small === value} onChange={() => setSmall(value)} />
            {value ? t.embeddedSmall : t.embeddedStandard}
          </label>
        ))}
      </fieldset>
      {fetch?.state === "failed" && <Problem>{fetch.error}</Problem>}
      {problems.map((problem) => (
        <Problem key={problem}>{problem}</Problem>
      ))}
      <button type="button" className="button primary" onClick={begin}>
        {t.fetchIt}
      </button>
    </>
  );
}
