/** Sign-in with a token (UI-38); it is kept for this tab only. */

import { useState, type FormEvent } from "react";
import { api, token } from "../api/client.ts";
import { base } from "../api/place.ts";
import { t } from "../text.ts";
import { Problem } from "../ui/kit.tsx";

export function SignIn({ onDone }: { onDone: () => void }) {
  const [secret, setSecret] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const enter = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    token.set(secret.trim());
    const me = await api.me().catch(() => null);
    if (me?.authenticated) return onDone();
    token.clear();
    setProblem(t.tokenRefused);
  };
  return (
    <main className="sign-in">
      <form className="card" onSubmit={(event) => void enter(event)}>
        <img src={`${base()}/icon.svg`} alt="" />
        <h1>{t.signIn}</h1>
        <label className="field">
          <span>{t.token}</span>
          <input className="input" type="password" autoComplete="current-password" autoFocus value={secret} onChange={(event) => setSecret(event.target.value)} />
          <span className="hint">{t.tokenHint}</span>
        </label>
        {problem && <Problem>{problem}</Problem>}
        <button type="submit" className="button primary" disabled={!secret.trim()}>
          {t.signIn}
        </button>
      </form>
    </main>
  );
}
