/** What is in force, where it comes from, and changing what may change while the server runs (UI-83). For admins. */

import { Lock, RotateCcw, SlidersHorizontal } from "lucide-react";
import { useCallback, useEffect, useMemo, useState } from "react";
import { ApiError } from "../api/client.ts";
import { settingsApi, type SettingRow } from "../api/settings.ts";
import { Page } from "../app/page.tsx";
import { t } from "../text.ts";
import { Empty, Problem } from "../ui/kit.tsx";
import { toast } from "../ui/toasts.tsx";
import { Editor } from "./editor.tsx";
import { NoModel, said } from "./setup.tsx";
import { refreshSetup, useSetup } from "./use_setup.ts";

type Shown = "changed" | "changeable" | "all";

/** Return a value as one line. */
export function valueText(row: SettingRow): string {
  const { value } = row;
  if (value === null || value === undefined || value === "") return t.notSet;
  if (Array.isArray(value)) return value.length > 0 ? value.join(", ") : t.none;
  if (typeof value === "boolean") return value ? t.yes : t.no;
  return `${typeof value === "object" ? JSON.stringify(value) : String(value)}${row.unit ? ` ${row.unit}` : ""}`;
}

function Origin({ row }: { row: SettingRow }) {
  if (row.origin === "default") return <span className="muted">{t.byDefault}</span>;
  return (
    <span className="muted origin" title={row.hides.length > 0 ? t.hides(row.hides.join(", ")) : undefined}>
      {row.origin}
    </span>
  );
}

function Setting({ row, onChanged }: { row: SettingRow; onChanged: () => void }) {
  const [open, setOpen] = useState(false);
  const [problems, setProblems] = useState<string[]>([]);
  const change = async (values: Record<string, unknown>, reset: readonly string[]): Promise<void> => {
    setProblems([]);
    try {
      await settingsApi.change(values, reset);
      toast(t.settingChanged(row.key));
      setOpen(false);
      onChanged();
    } catch (error) {
      setProblems(said(error));
    }
  };
  return (
    <li className={`setting ${row.changed ? "changed" : ""}`}>
      <div className="setting-line">
        <div className="setting-name">
          <code>{row.key}</code>
          <p>{row.meaning}</p>
        </div>
        <div className="setting-value">
          <span className="value">{valueText(row)}</span>
          <Origin row={row} />
        </div>
        <div className="setting-do">
          {row.locked ? (
            <span className="lock" title={row.locked}>
              <Lock size={15} aria-hidden="true" />
              <span className="hidden">{row.locked}</span>
            </span>
          ) : (
            <>
              {row.origin !== "default" && (
                <button type="button" className="button icon plain small" aria-label={t.resetSetting(row.key)} title={t.resetSetting(row.key)} onClick={() => void change({}, [row.key])}>
                  <RotateCcw size={15} aria-hidden="true" />
                </button>
              )}
              <button type="button" className="button small" aria-expanded={open} aria-label={`${t.change} ${row.key}`} onClick={() => setOpen(!open)}>
                {t.change}
              </button>
            </>
          )}
        </div>
      </div>
      {open && <Editor row={row} onSave={(value) => change({ [row.key]: value }, [])} onClose={() => setOpen(false)} />}
      {problems.map((problem) => (
        <Problem key={problem}>{problem}</Problem>
      ))}
    </li>
  );
}

const matches = (row: SettingRow, words: string): boolean => `${row.key} ${row.meaning}`.toLowerCase().includes(words);

function bySection(rows: readonly SettingRow[]): [string, SettingRow[]][] {
  const sections = new Map<string, SettingRow[]>();
  for (const row of rows) {
    const name = row.key.split(".")[0] ?? "";
    sections.set(name, [...(sections.get(name) ?? []), row]);
  }
  return [...sections];
}

export default function SettingsPage() {
  const [rows, setRows] = useState<SettingRow[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [query, setQuery] = useState("");
  const [shown, setShown] = useState<Shown>("changeable");
  const setup = useSetup();
  const load = useCallback((): void => {
    settingsApi.all().then(
      (found) => {
        setRows(found);
        setProblem(null);
      },
      (error: unknown) => setProblem(error instanceof ApiError && error.status === 403 ? t.adminsOnly : said(error).join(" ")),
    );
  }, []);
  // A model that was fetched or chosen meanwhile has changed settings.
  useEffect(load, [load, setup?.model, setup?.usable]);
  const found = useMemo(() => {
    const words = query.trim().toLowerCase();
    const kept = (row: SettingRow): boolean => (shown === "all" || words !== "" ? true : shown === "changed" ? row.changed || row.origin !== "default" : !row.locked);
    return bySection((rows ?? []).filter((row) => kept(row) && matches(row, words)));
  }, [rows, query, shown]);
  const changed = (): void => {
    load();
    refreshSetup();
  };
  return (
    <Page title={t.settings} about={t.settingsAbout} problem={problem} ready={rows !== null}>
      {setup && !setup.usable && <NoModel setup={setup} />}
      {rows && (
        <div className="settings-bar">
          <input className="input" type="search" aria-label={t.searchSettings} placeholder={t.searchSettings} value={query} onChange={(event) => setQuery(event.target.value)} />
          <div className="segmented" role="group" aria-label={t.whichSettings}>
            {(["changeable", "changed", "all"] as const).map((which) => (
              <button key={which} type="button" className="button small" aria-pressed={shown === which} onClick={() => setShown(which)}>
                {t.settingKinds[which]}
              </button>
            ))}
          </div>
        </div>
      )}
      {rows && found.length === 0 && (
        <Empty icon={SlidersHorizontal} title={query ? t.nothingFound : t.allDefaults} />
      )}
      {found.map(([section, part]) => (
        <section key={section}>
          <h2 className="section-title">{section}</h2>
          <ul className="card settings">
            {part.map((row) => (
              <Setting key={row.key} row={row} onChanged={changed} />
            ))}
          </ul>
        </section>
      ))}
    </Page>
  );
}
