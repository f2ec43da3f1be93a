/** A conflict decided place by place: yours, the agent's, both or a text; the rest is merged (UI-30, UI-89). */

import { useEffect, useId, useState } from "react";
import { api, ApiError } from "../api/client.ts";
import type { Conflict, ConflictPlace, Refused, Taken } from "../api/types.ts";
import { bothOf, carried, endsOf, linesOf, lostLines, takesOf, undecided, type Carried, type Decisions } from "../state/conflict.ts";
import { useFace } from "../app/place.tsx";
import { liveConversation } from "../state/live.ts";
import { refusalReason } from "../state/review.ts";
import { t } from "../text.ts";
import { Dialog, Loading, Problem } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";

interface ConflictProps {
  conversation: string;
  refused: Refused;
  /** Land it so; whether it landed. */
  onDecided: (conflict: Conflict, taken: Taken[]) => Promise<boolean>;
  /** The agent's whole file, in place of the person's. */
  onForce: () => void;
  onLeaveOut: () => void;
  onClose: () => void;
}

const MOST_QUOTED = 20_000;

/** What was decided of a file and has not landed: a dialog that is closed, or a landing that came too late, loses nothing. */
const kept = new Map<string, { places: readonly ConflictPlace[]; decisions: Decisions }>();

/** Where a path conflicts, asked anew with each number, and which number that answers; null where it does not. */
function useConflict(conversation: string, path: string, asked: number): [Conflict | null | undefined, number] {
  const [found, setFound] = useState<[Conflict | null | undefined, number]>([undefined, 0]);
  useEffect(() => {
    let here = true;
    api.conflict(conversation, path).then(
      (conflict) => here && setFound([conflict, asked]),
      (error: unknown) => {
        if (!here) return;
        setFound([null, asked]);
        if (!(error instanceof ApiError && error.status === 404)) complain(error);
      },
    );
    return () => {
      here = false;
    };
  }, [conversation, path, asked]);
  return found;
}

/** The decisions of a file's places, and the texts of those whose places are no more. */
function useDecisions(name: string, places: readonly ConflictPlace[] | null | undefined) {
  const [{ decisions, lost }, set] = useState<Carried>({ decisions: new Map(), lost: [] });
  useEffect(() => {
    const before = kept.get(name);
    if (places === undefined || !before) return;
    const now = carried(before.places, before.decisions, places ?? []);
    set(({ lost: earlier }) => ({ decisions: now.decisions, lost: [...earlier, ...now.lost] }));
    kept.set(name, { places: places ?? [], decisions: now.decisions });
  }, [name, places]);
  const decide = (at: number, taken: Taken): void => {
    const next = new Map(decisions).set(at, taken);
    kept.set(name, { places: places ?? [], decisions: next });
    set({ decisions: next, lost });
  };
  return { decisions, lost, decide };
}

async function askAgent(conversation: string, path: string): Promise<void> {
  const mine = await api.file(path, "none").then(
    (file) => file.content ?? "",
    (error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return "";
      throw error;
    },
  );
  liveConversation(conversation).say("message", t.resolveMessage(path, mine.slice(0, MOST_QUOTED)));
  toast(t.askedAgent);
}

function Merged({ place }: { place: ConflictPlace }) {
  const [first, last] = endsOf(place);
  const whose = place.kind === "ours" ? t.yoursKept : place.kind === "theirs" ? t.agentsMerged : place.kind === "both" ? t.bothAlike : "";
  return (
    <li className={`place ${place.kind}`}>
      {whose && <span className="badge">{whose}</span>}
      {first.length + last.length === 0 && <p className="muted">{t.linesGone}</p>}
      {first.length > 0 && <pre>{first.join("\n")}</pre>}
      {place.cut > 0 && <p className="cut">{t.unchangedLines(place.cut)}</p>}
      {last.length > 0 && <pre>{last.join("\n")}</pre>}
    </li>
  );
}

interface ChoiceProps {
  place: ConflictPlace;
  number: number;
  of: number;
  taken: Taken | undefined;
  onTake: (taken: Taken) => void;
}

function Choice({ place, number, of, taken, onTake }: ChoiceProps) {
  const name = useId();
  const radio = (take: Taken["take"], label: string) => (
    <label>
      <input
        type="radio"
        name={name}
        checked={taken?.take === take}
        onChange={() => onTake(take === "text" ? { take, text: bothOf(place) } : { take, text: "" })}
      />{" "}
      {label}
    </label>
  );
  const side = (text: string) => (linesOf(text).length > 0 ? <pre tabIndex={0}>{linesOf(text).join("\n")}</pre> : <p className="muted">{t.linesGone}</p>);
  return (
    <li className={`place conflict ${taken ? "decided" : ""}`}>
      <fieldset>
        <legend>{t.conflictNumber(number, of)}</legend>
        <div className="sides">
          <section className={taken?.take === "ours" || taken?.take === "both" ? "taken" : ""}>
            {radio("ours", t.yourVersion)}
            {side(place.ours)}
          </section>
          <section className={taken?.take === "theirs" || taken?.take === "both" ? "taken" : ""}>
            {radio("theirs", t.agentVersion)}
            {side(place.theirs)}
          </section>
        </div>
        <div className="more">
          {radio("both", t.takeBoth)}
          {radio("text", t.editPlace)}
          {place.base !== "" && (
            <details>
              <summary>{t.baseVersion}</summary>
              <pre>{linesOf(place.base).join("\n")}</pre>
            </details>
          )}
        </div>
        {taken?.take === "text" && (
          <textarea
            className="input"
            aria-label={t.ownText(number)}
            rows={Math.min(14, Math.max(3, linesOf(taken.text ?? "").length + 1))}
            value={taken.text}
            onChange={(event) => onTake({ take: "text", text: event.target.value })}
          />
        )}
      </fieldset>
    </li>
  );
}

/** The whole file of the agent, behind what it would throw away. */
function WholeFile({ places, onForce }: { places: readonly ConflictPlace[] | null; onForce: () => void }) {
  const lost = places ? lostLines(places) : null;
  return (
    <details className="whole-file">
      <summary>{t.replaceMine}</summary>
      <p>{lost === null ? t.replaceMineText : t.linesLost(lost.length)}</p>
      {lost && lost.length > 0 && <pre>{lost.map((line) => `− ${line}`).join("\n")}</pre>}
      <button type="button" className="button danger small" onClick={onForce}>
        {t.replaceMine}
      </button>
    </details>
  );
}

export function ConflictDialog({ conversation, refused, onDecided, onForce, onLeaveOut, onClose }: ConflictProps) {
  const face = useFace();
  const path = refused.path.replace(/^\//, "");
  const name = `${conversation}/${path}`;
  const [asked, setAsked] = useState(0);
  const [busy, setBusy] = useState(false);
  const [conflict, answered] = useConflict(conversation, path, asked);
  const places = conflict?.places ?? null;
  const { decisions, lost, decide } = useDecisions(name, conflict === undefined ? undefined : places);
  const isOver = answered > 0 && conflict === null;
  const conflicts = (places ?? []).flatMap((place, at) => (place.kind === "conflict" ? [at] : []));
  const taken = places ? takesOf(places, decisions) : null;
  const left = places ? undecided(places, decisions) : 0;
  const land = async (of: Conflict, takes: Taken[]): Promise<void> => {
    setBusy(true);
    if (await onDecided(of, takes)) {
      kept.delete(name);
      return onClose();
    }
    setAsked(asked + 1);
    setBusy(false);
  };
  return (
    <Dialog
      wide
      title={path}
      onClose={onClose}
      foot={
        isOver ? (
          <button type="button" className="button primary" onClick={onClose}>
            {t.close}
          </button>
        ) : (
          <>
            <button type="button" className="button" onClick={onLeaveOut}>
              {t.keepMine}
            </button>
            <button
              type="button"
              className="button"
              onClick={() => {
                askAgent(conversation, path).catch(complain);
                onClose();
              }}
            >
              {t.askResolve}
            </button>
            {places && conflict && (
              <button type="button" className="button primary" disabled={taken === null || busy || answered !== asked} onClick={() => taken && void land(conflict, taken)}>
                {left > 0 ? t.placesLeft(left) : face === "dev" ? t.landDecided : t.keepDecided}
              </button>
            )}
          </>
        )
      }
    >
      <p>{isOver ? t.decidedMeanwhile : refusalReason(conflict?.reason || refused.reason)}</p>
      {answered > 0 && !isOver && <Problem tone="warn">{t.placesMoved}</Problem>}
      {lost.length > 0 && (
        <Problem tone="warn">
          <p>{t.textsLeft}</p>
          {lost.map((text, at) => (
            <pre key={at}>{text}</pre>
          ))}
        </Problem>
      )}
      {conflict === undefined && <Loading label={t.loading} />}
      {places && (
        <ol className="places">
          {places.map((place, at) =>
            place.kind === "conflict" ? (
              <Choice
                key={at}
                place={place}
                number={conflicts.indexOf(at) + 1}
                of={conflicts.length}
                taken={decisions.get(at)}
                onTake={(now) => decide(at, now)}
              />
            ) : (
              <Merged key={at} place={place} />
            ),
          )}
        </ol>
      )}
      {conflict !== undefined && !isOver && <WholeFile places={places} onForce={onForce} />}
    </Dialog>
  );
}
