/** The field in which one setting is changed, by its kind. Not here: what may be changed (the server says). */

import { useState, type FormEvent } from "react";
import type { SettingRow } from "../api/settings.ts";
import { t } from "../text.ts";

interface EditorProps {
  row: SettingRow;
  onSave: (value: unknown) => Promise<void>;
  onClose: () => void;
}

const asText = (row: SettingRow): string => {
  if (row.secret || row.value === null || row.value === undefined) return "";
  return Array.isArray(row.value) ? row.value.join("\n") : String(row.value);
};

/** Return what a typed text means for a setting. */
export function valueOf(row: Pick<SettingRow, "kind" | "nullable">, text: string): unknown {
  const words = text.trim();
  if (row.kind === "list") return text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (words === "" && row.nullable) return null;
  if (row.kind === "int" || row.kind === "float") return words !== "" && Number.isFinite(Number(words)) ? Number(words) : words;
  return row.kind === "bool" ? text === "true" : words;
}

export function Editor({ row, onSave, onClose }: EditorProps) {
  const [text, setText] = useState(() => asText(row));
  const [busy, setBusy] = useState(false);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setBusy(true);
    void onSave(valueOf(row, text)).finally(() => setBusy(false));
  };
  const options = row.kind === "bool" ? ["true", "false"] : [...row.choices];
  const hint = [row.allowed, t.defaultIs(row.default), row.applies].filter(Boolean).join(" · ");
  return (
    <form className="setting-edit" onSubmit={submit}>
      <label className="field">
        <span>{t.newValue}</span>
        {(row.kind === "bool" || row.kind === "choice") && options.length > 0 ? (
          <select className="input" autoFocus value={text} onChange={(event) => setText(event.target.value)}>
            {options.map((option) => (
              <option key={option} value={option}>
                {row.kind === "bool" ? (option === "true" ? t.yes : t.no) : option}
              </option>
            ))}
          </select>
        ) : row.kind === "list" ? (
          <textarea className="input" autoFocus rows={4} value={text} onChange={(event) => setText(event.target.value)} />
        ) : (
          <input
            className="input"
            autoFocus
            type={row.secret ? "password" : "text"}
            inputMode={row.kind === "int" ? "numeric" : row.kind === "float" ? "decimal" : undefined}
            autoComplete="off"
            spellCheck={false}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
        <span className="hint">{row.kind === "list" ? `${t.onePerLine} · ${hint}` : hint}</span>
      </label>
      <div className="actions">
        <button type="submit" className="button primary small" disabled={busy || (row.secret && text === "")}>
          {t.save}
        </button>
        <button type="button" className="button small" onClick={onClose}>
          {t.cancel}
        </button>
      </div>
    </form>
  );
}
