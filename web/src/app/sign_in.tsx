/** Sign-in with a token or with Google, as the server is set up (UI-38); kept by this tab. */

import { lazy, Suspense, useEffect, useState, type FormEvent } from "react";
import { api, token } from "../api/client.ts";
import { base } from "../api/place.ts";
import { t } from "../text.ts";
import { Problem } from "../ui/kit.tsx";
import { signInElsewhere } from "./sign_in_elsewhere.ts";

const GoogleButton = lazy(() => import("./google.tsx").then((module) => ({ default: module.GoogleButton })));

export default function SignIn({ onDone }: { onDone: () => void }) {
  const [secret, setSecret] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [google, setGoogle] = useState<string | null>(null);
  useEffect(() => {
    api.authConfig().then(
      (config) => setGoogle(config.google_client_id),
      () => undefined, // the token field is there in any case
    );
  }, []);
  useEffect(() => {
    let here = true;
    void signInElsewhere().then(async (found) => {
      if (!here || found === null || token.get()) return;
      token.set(found);
      const me = await api.me().catch(() => null);
      if (me?.authenticated) onDone();
      else token.clear();
    });
    return () => {
      here = false;
    };
  }, []);
  const enter = async (credential: string, refused: string): Promise<void> => {
    setProblem(null);
    token.set(credential);
    const me = await api.me().catch(() => null);
    if (me?.authenticated) return onDone();
    token.clear();
    setProblem(refused);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void enter(secret.trim(), t.tokenRefused);
  };
  return (
    <main className="sign-in">
      <form className="card" onSubmit={submit}>
        <img src={`${base()}/icon.svg`} alt="" width="48" height="48" />
        <h1>{t.signIn}</h1>
        {google && (
          <>
            <Suspense fallback={null}>
              <GoogleButton client={google} onCredential={(credential) => void enter(credential, t.googleRefused)} />
            </Suspense>
            <p className="or">
              <span>{t.orToken}</span>
            </p>
          </>
        )}
        <label className="field">
          <span>{t.token}</span>
          <input className="input" type="password" autoComplete="current-password" autoFocus={!google} value={secret} onChange={(event) => setSecret(event.target.value)} />
          <span className="hint">{t.tokenHint}</span>
        </label>
        {problem && <Problem>{problem}</Problem>}
        <button type="submit" className={`button ${google ? "" : "primary"}`} disabled={!secret.trim()}>
          {t.signIn}
        </button>
      </form>
    </main>
  );
}
