/** What another app shared: shown, then put into a new chat or a chosen one (UI-95). */

import { Share2 } from "lucide-react";
import { useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { api, upload } from "../api/client.ts";
import { inOrder, refreshSessions, useSessions } from "../sessions/list.ts";
import { drafts } from "../state/preferences.ts";
import { size } from "../state/words.ts";
import { seenTitle } from "../state/hidden_marks.ts";
import { t } from "../text.ts";
import { Empty, Problem } from "../ui/kit.tsx";
import { complain } from "../ui/toasts.tsx";
import { Page } from "./page.tsx";
import { useLinks } from "./place.tsx";
import { takeShared, type Shared } from "./shared_store.ts";
import "../styles/settings.css";


// What was taken is gone from the store: drawn twice, the page must not ask twice.
let taken: Promise<Shared | null> | null = null;

function Picture({ file }: { file: File }) {
  const [address, setAddress] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(file);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  return address ? <img src={address} alt={file.name} /> : null;
}

function Content({ shared }: { shared: Shared }) {
  return (
    <div className="card pad shared">
      {shared.words.map((word) => (
        <p key={word} dir="auto">
          {word}
        </p>
      ))}
      {shared.files.map((file) => (
        <figure key={file.name}>
          {file.type.startsWith("image/") && <Picture file={file} />}
          <figcaption>
            {file.name} <span className="muted">{size(file.size)}</span>
          </figcaption>
        </figure>
      ))}
    </div>
  );
}

/** Put it into a conversation: files on its branch, words into the box, where the person goes on. */
async function putInto(conversation: string, shared: Shared): Promise<void> {
  const paths = shared.files.length > 0 ? await upload(shared.files, "", conversation, () => undefined).done : [];
  const words = [drafts.get(conversation), ...shared.words, ...(paths.length > 0 ? [t.sharedFiles(paths.join(", "))] : [])];
  drafts.set(conversation, words.filter(Boolean).join("\n\n"));
}

export default function SharedPage() {
  const links = useLinks();
  const [, go] = useLocation();
  const { rows } = useSessions();
  const [shared, setShared] = useState<Shared | null | undefined>(undefined);
  const [target, setTarget] = useState("");
  const [busy, setBusy] = useState(false);
  const failed = location.search.includes("failed");
  useEffect(() => {
    taken ??= takeShared();
    void taken.then(setShared);
  }, []);
  const goOn = async (): Promise<void> => {
    if (!shared) return;
    setBusy(true);
    try {
      const conversation = target || (await api.begin({})).conversation_id;
      await putInto(conversation, shared);
      taken = null;
      refreshSessions();
      go(links.chat(conversation), { replace: true });
    } catch (error) {
      complain(error);
      setBusy(false);
    }
  };
  const { urgent, others } = inOrder(rows ?? []);
  return (
    <Page title={t.shared} problem={null} ready={shared !== undefined}>
      {failed && <Problem tone="warn">{t.sharedFailed}</Problem>}
      {shared === null && !failed && (
        <Empty icon={Share2} title={t.sharedNothing}>
          <p>{t.sharedNothingText}</p>
          <Link className="button" href={links.home}>
            {t.toStart}
          </Link>
        </Empty>
      )}
      {shared && (
        <>
          <Content shared={shared} />
          <label className="field">
            <span>{t.sharedInto}</span>
            <select className="input" value={target} onChange={(event) => setTarget(event.target.value)}>
              <option value="">{t.sharedNew}</option>
              {[...urgent, ...others].map((row) => (
                <option key={row.id} value={row.id}>
                  {seenTitle(row.title)}
                </option>
              ))}
            </select>
            {shared.files.length > 0 && <span className="hint">{t.uploadedAs}</span>}
          </label>
          <div className="actions">
            <button type="button" className="button primary" disabled={busy} onClick={() => void goOn()}>
              {t.sharedSend}
            </button>
          </div>
        </>
      )}
    </Page>
  );
}
