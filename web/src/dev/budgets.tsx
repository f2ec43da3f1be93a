/** Limits of money and where they stand (UI-35, SV-32). */

import { useCallback, useEffect, useState } from "react";
import { api } from "../api/client.ts";
import type { Budget, NewBudget } from "../api/types.ts";
import { dollars } from "../state/words.ts";
import { t } from "../text.ts";
import { Dialog, Problem } from "../ui/kit.tsx";
import { complain } from "../ui/toasts.tsx";

function SetLimit({ budget, onDone, onClose }: { budget: Budget; onDone: () => void; onClose: () => void }) {
  const [limit, setLimit] = useState(budget.limit_usd === null ? "" : String(budget.limit_usd));
  const [problem, setProblem] = useState<string | null>(null);
  const save = (): void => {
    const wanted: NewBudget = { scope: budget.scope as NewBudget["scope"], key: budget.key || null, limit_usd: limit.trim() === "" ? null : Number(limit) };
    api.setBudget(wanted).then(onDone, (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  };
  return (
    <Dialog
      title={t.setLimit}
      onClose={onClose}
      foot={
        <button type="button" className="button primary" disabled={limit.trim() !== "" && !(Number(limit) >= 0)} onClick={save}>
          {t.save}
        </button>
      }
    >
      {problem && <Problem>{problem}</Problem>}
      <label className="field">
        <span>{t.limitUsd}</span>
        <input className="input" type="number" min="0" step="0.5" autoFocus value={limit} onChange={(event) => setLimit(event.target.value)} />
      </label>
    </Dialog>
  );
}

export function Budgets() {
  const [rows, setRows] = useState<Budget[]>([]);
  const [setting, setSetting] = useState<Budget | null>(null);
  const load = useCallback((): void => {
    api.budgets().then(setRows, complain);
  }, []);
  useEffect(load, [load]);
  if (rows.length === 0) return null;
  return (
    <section>
      <h2 className="section-title">{t.budgets}</h2>
      <div className="card table-scroll" tabIndex={0} role="region" aria-label={t.budgets}>
        <table className="plain">
          <thead>
            <tr>
              <th scope="col">{t.whose}</th>
              <th scope="col">{t.spent}</th>
              <th scope="col">{t.limit}</th>
              <th scope="col">
                <span className="hidden">{t.options}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={`${row.scope} ${row.key}`}>
                <td>
                  {t.scopes[row.scope] ?? row.scope} <span className="muted mono">{row.key}</span>
                </td>
                <td>{dollars(row.spent_usd)}</td>
                <td>{row.limit_usd === null ? t.noLimit : dollars(row.limit_usd)}</td>
                <td>
                  <button type="button" className="button small plain" onClick={() => setSetting(row)}>
                    {t.setLimit}
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {setting && (
        <SetLimit
          budget={setting}
          onClose={() => setSetting(null)}
          onDone={() => {
            setSetting(null);
            load();
          }}
        />
      )}
    </section>
  );
}
