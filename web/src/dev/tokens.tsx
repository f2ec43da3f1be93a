/** Tokens: made, shown once, revoked (UI-35, SV-55, SV-62). For admins. */

import { KeyRound } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { api, ApiError } from "../api/client.ts";
import type { NewToken, TokenMade, TokenRow } from "../api/types.ts";
import { Page } from "../app/page.tsx";
import { ago, day, moment } from "../state/words.ts";
import { t } from "../text.ts";
import { CopyButton } from "../ui/code.tsx";
import { Dialog, Empty, Problem } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";

const ROLES = ["viewer", "user", "admin"] as const;

function stateOf(row: TokenRow): { word: string; tone: string } {
  if (row.revoked_at) return { word: t.revoked, tone: "" };
  return row.usable ? { word: t.usable, tone: "ok" } : { word: t.expired, tone: "warn" };
}

function Make({ onMade, onClose }: { onMade: (made: TokenMade) => void; onClose: () => void }) {
  const [wanted, setWanted] = useState<NewToken>({ name: "", role: "user" });
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const change = (part: Partial<NewToken>): void => setWanted({ ...wanted, ...part });
  const make = (): void => {
    setBusy(true);
    api.makeToken(wanted).then(onMade, (error: unknown) => {
      setBusy(false);
      setProblem(error instanceof Error ? error.message : String(error));
    });
  };
  return (
    <Dialog
      title={t.newToken}
      onClose={onClose}
      foot={
        <>
          <button type="button" className="button" onClick={onClose}>
            {t.cancel}
          </button>
          <button type="button" className="button primary" disabled={busy || !wanted.name.trim()} onClick={make}>
            {t.newToken}
          </button>
        </>
      }
    >
      {problem && <Problem>{problem}</Problem>}
      <label className="field">
        <span>{t.name}</span>
        <input className="input" autoFocus maxLength={100} value={wanted.name} onChange={(event) => change({ name: event.target.value })} />
      </label>
      <label className="field">
        <span>{t.role}</span>
        <select className="input" value={wanted.role} onChange={(event) => change({ role: event.target.value as (typeof ROLES)[number] })}>
          {ROLES.map((role) => (
            <option key={role} value={role}>
              {t.roles[role]}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        <span>{t.forUser}</span>
        <input className="input" maxLength={200} value={wanted.user ?? ""} onChange={(event) => change({ user: event.target.value })} />
        <span className="hint">{t.forUserHint}</span>
      </label>
      <label className="field">
        <span>{t.expires}</span>
        <input className="input" value={wanted.expires ?? ""} onChange={(event) => change({ expires: event.target.value.trim() || null })} />
        <span className="hint">{t.expiresHint}</span>
      </label>
    </Dialog>
  );
}

export default function TokensPage() {
  const [rows, setRows] = useState<TokenRow[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<TokenMade | null>(null);
  const load = useCallback((): void => {
    api.tokens().then(setRows, (error: unknown) => {
      if (error instanceof ApiError && error.status === 403) setProblem(t.adminsOnly);
      else setProblem(error instanceof Error ? error.message : String(error));
    });
  }, []);
  useEffect(load, [load]);
  const revoke = (row: TokenRow): void => {
    void api.revokeToken(row.id).then(() => {
      toast(t.revokedToast(row.name));
      load();
    }, complain);
  };
  return (
    <Page
      title={t.tokensPage}
      about={t.tokensAbout}
      problem={problem}
      ready={rows !== null}
      actions={
        rows && (
          <button type="button" className="button primary" onClick={() => setMaking(true)}>
            {t.newToken}
          </button>
        )
      }
    >
      {rows?.length === 0 && <Empty icon={KeyRound} title={t.noTokens} />}
      {rows && rows.length > 0 && (
        <div className="card table-scroll" tabIndex={0} role="region" aria-label={t.tokensPage}>
          <table className="plain left">
            <thead>
              <tr>
                {[t.name, t.role, t.forUser, t.created, t.expires, t.stateWord].map((head) => (
                  <th key={head} scope="col" className={head === t.forUser || head === t.created ? "roomy" : undefined}>
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
                  <td>{row.name}</td>
                  <td>{row.role}</td>
                  <td className="roomy">{row.user}</td>
                  <td className="roomy" title={moment(row.created_at)}>
                    {ago(row.created_at)}
                  </td>
                  <td title={row.expires_at ? moment(row.expires_at) : undefined}>{row.expires_at ? day(row.expires_at.slice(0, 10), true) : t.never}</td>
                  <td>
                    <span className={`badge ${stateOf(row).tone}`}>{stateOf(row).word}</span>
                  </td>
                  <td>
                    {row.usable && (
                      <button type="button" className="button small plain danger" aria-label={`${t.revoke} ${row.name}`} onClick={() => revoke(row)}>
                        {t.revoke}
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {making && (
        <Make
          onClose={() => setMaking(false)}
          onMade={(token) => {
            setMaking(false);
            setMade(token);
            load();
          }}
        />
      )}
      {made && (
        <Dialog title={made.name} onClose={() => setMade(null)}>
          <Problem tone="info">{t.tokenMade}</Problem>
          <div className="secret">
            <code data-testid="secret">{made.token}</code>
            <CopyButton text={made.token} />
          </div>
        </Dialog>
      )}
    </Page>
  );
}
