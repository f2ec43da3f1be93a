/** Sign-in with a token or with Google, as the server is set up (UI-38); kept by this tab. */

import { lazy, Suspense, useEffect, useState, type FormEvent } from "react";
import { api, ApiError, signedIn, token } from "../api/client.ts";
import { base } from "../api/place.ts";
import { t } from "../text.ts";
import { Problem } from "../ui/kit.tsx";
import { handOn, signInElsewhere } from "./sign_in_elsewhere.ts";

const GoogleButton = lazy(() => import("./google.tsx").then((module) => ({ default: module.GoogleButton })));

/** Whether the server takes this credential, which is then kept; raises where it cannot be asked now. */
async function isValid(credential: string): Promise<boolean> {
  token.set(credential);
  try {
    const me = await api.me();
    if (me.authenticated) {
      signedIn();
      return true;
    }
  } catch (error) {
    if (token.get() === credential) token.clear();
    if (!(error instanceof ApiError && error.status === 401)) throw error;
  }
  token.clear();
  return false;
}

interface SignInProps {
  /** Why one is asked again. */
  reason?: string | null;
  onDone: () => void;
}

export default function SignIn({ reason, onDone }: SignInProps) {
  const [secret, setSecret] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [google, setGoogle] = useState<string | null>(null);
  useEffect(() => {
    api.authConfig().then(
      (config) => setGoogle(config.google_client_id),
      () => undefined, // the token field is there in any case
    );
  }, []);
  useEffect(() => {
    return signInElsewhere((found) => void isValid(found).then((valid) => valid && onDone(), () => undefined));
  }, []);
  const enter = async (credential: string, refused: string): Promise<void> => {
    setProblem(null);
    setBusy(true);
    try {
      if (await isValid(credential)) {
        handOn();
        return onDone();
      }
      setProblem(refused);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
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
        {reason && <p className="muted" role="status">{reason}</p>}
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
        <button type="submit" className={`button ${google ? "" : "primary"}`} disabled={busy || !secret.trim()}>
          {t.signIn}
        </button>
      </form>
    </main>
  );
}
