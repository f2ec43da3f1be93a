/** What is always allowed: listed and taken back (UI-71). */

import { ShieldQuestion } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { api } from "../api/client.ts";
import type { Permission } from "../api/types.ts";
import { Page } from "../app/page.tsx";
import { ago, moment } from "../state/words.ts";
import { t } from "../text.ts";
import { Empty } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";

export default function PermissionsPage() {
  const [rows, setRows] = useState<Permission[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const load = useCallback((): void => {
    api.permissions().then(setRows, (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  }, []);
  useEffect(load, [load]);
  const remove = (row: Permission): void => {
    void api.removePermission(row.id).then(() => {
      toast(t.ruleTakenBack(row.rule));
      load();
    }, complain);
  };
  return (
    <Page title={t.permissions} about={t.permissionsAbout} problem={problem} ready={rows !== null}>
      {rows?.length === 0 && <Empty icon={ShieldQuestion} title={t.noPermissions} />}
      {rows && rows.length > 0 && (
        <div className="card table-scroll" tabIndex={0} role="region" aria-label={t.permissions}>
          <table className="plain left">
            <thead>
              <tr>
                {[t.rule, t.where, t.created].map((head) => (
                  <th key={head} scope="col">
                    {head}
                  </th>
                ))}
                <th scope="col">
                  <span className="hidden">{t.options}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id}>
                  <td>
                    <code>{row.rule}</code>
                  </td>
                  <td>
                    {t.alwaysIn[row.scope]} <span className="mono muted">{row.target}</span>
                  </td>
                  <td title={moment(row.at)}>{ago(row.at)}</td>
                  <td>
                    <button type="button" className="button small plain danger" aria-label={`${t.takeBack} ${row.rule}`} onClick={() => remove(row)}>
                      {t.takeBack}
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Page>
  );
}
