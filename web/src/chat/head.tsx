/** The head of a conversation: what it is, what it costs, what can be switched (UI-12, UI-13). */

import { Activity, ClipboardList, Ellipsis, FlaskConical, FolderTree, GitCompare, GitFork, ListRestart, Play, ShieldAlert, Shrink, ShieldCheck, Users } from "lucide-react";
import { memo, useEffect, useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import { api } from "../api/client.ts";
import type { Conversation, Sandbox } from "../api/types.ts";
import { useFace, useLinks } from "../app/place.tsx";
import { SidebarButton } from "../app/shell.tsx";
import type { ConversationState, Flags } from "../state/entries.ts";
import { dollars, percent, short } from "../state/words.ts";
import { seenTitle } from "../state/hidden_marks.ts";
import { t } from "../text.ts";
import { Dialog, IconButton, Menu } from "../ui/kit.tsx";
import { complain, toast } from "../ui/toasts.tsx";

export type Panel = "files" | "traffic" | null;

/** What of a conversation's state the head shows: none of it changes with a word of an answer. */
type HeadState = Pick<ConversationState, "flags" | "lastInputTokens" | "changedCount" | "tier">;

/** The same value while nothing of it changed. */
export function useHeadState({ flags, lastInputTokens, changedCount, tier }: HeadState): HeadState {
  return useMemo(() => ({ flags, lastInputTokens, changedCount, tier }), [flags, lastInputTokens, changedCount, tier]);
}

interface HeadProps {
  conversation: string;
  facts: Conversation | null;
  state: HeadState;
  panel: Panel;
  onPanel: (panel: Panel) => void;
  onToggle: (flag: keyof Flags, enabled: boolean) => void;
  onFork: () => void;
  onReplay: (() => void) | null;
}

function TierBadge({ tier }: { tier: string }) {
  const [open, setOpen] = useState(false);
  const [sandbox, setSandbox] = useState<Sandbox | null>(null);
  useEffect(() => {
    if (open) api.sandbox().then(setSandbox, complain);
  }, [open]);
  return (
    <>
      <button type="button" className="badge warn" style={{ border: 0, cursor: "pointer" }} onClick={() => setOpen(true)}>
        <ShieldAlert size={13} aria-hidden="true" />
        {t.tier(tier)}
      </button>
      {open && (
        <Dialog title={t.tierTitle(tier)} onClose={() => setOpen(false)}>
          <p>{t.tierText[tier] ?? ""}</p>
          {Object.entries(sandbox?.reasons ?? {}).map(([name, reason]) => reason && <p key={name} className="muted"><strong>{name}</strong>: {reason}</p>)}
        </Dialog>
      )}
    </>
  );
}

function flagOf(state: HeadState, facts: Conversation | null, flag: keyof Flags): boolean {
  const told = state.flags[flag];
  if (told !== undefined) return told;
  if (!facts) return false;
  return { plan: facts.enable_plan_mode, teams: facts.enable_teams, approval: facts.enable_approval }[flag];
}

function Meter({ facts, state }: { facts: Conversation | null; state: HeadState }) {
  return (
    <div className="meter" role="group" aria-label={t.tokensAndCost}>
      <span className="wide-only">
        <b>{short(facts?.total_input_tokens ?? 0)}</b> {t.tokensIn}
      </span>
      <span className="wide-only">
        <b>{short(facts?.total_output_tokens ?? 0)}</b> {t.tokensOut}
      </span>
      <span>
        <b data-testid="cost">{dollars(facts ? facts.cost : 0)}</b>
      </span>
      {state.lastInputTokens > 0 && facts?.context_window && (
        <span className="wide-only" title={t.contextHint(short(state.lastInputTokens), short(facts.context_window))} data-testid="context">
          <b>{percent(state.lastInputTokens / facts.context_window)}</b> {t.context}
        </span>
      )}
      {facts && <span className="mono wide-only clip">{facts.model.replace(/^[a-z]+:/, "")}</span>}
    </div>
  );
}

const SWITCHES = [
  ["plan", ClipboardList, t.plan],
  ["approval", ShieldCheck, t.approval],
  ["teams", Users, t.teams],
] as const;

export const ChatHead = memo(function ChatHead({ conversation, facts, state, panel, onPanel, onToggle, onFork, onReplay }: HeadProps) {
  const face = useFace();
  const links = useLinks();
  const [, go] = useLocation();
  const changed = state.changedCount ?? facts?.changed_files ?? 0;
  const title = seenTitle(facts?.title);
  const compact = (): void => void api.compact(conversation).then(() => toast(t.compacting), complain);
  return (
    <header className="head">
      <SidebarButton />
      <div className="head-title">
        <div className="stack">
          <h1 className="clip" dir="auto">{title}</h1>
          {face === "dev" && <Meter facts={facts} state={state} />}
        </div>
        {state.tier && state.tier !== "overlay" && <TierBadge tier={state.tier} />}
      </div>
      {face === "dev" && (
        <div className="wide-only" role="group" aria-label={t.options} style={{ display: "flex", gap: "0.25rem" }}>
          {SWITCHES.map(([flag, Icon, label]) => {
            const on = flagOf(state, facts, flag);
            return (
              <button key={flag} type="button" className="button small plain" aria-pressed={on} title={label} aria-label={label} onClick={() => onToggle(flag, !on)}>
                <Icon size={16} aria-hidden="true" />
                <span className="xl-only">{label}</span>
              </button>
            );
          })}
        </div>
      )}
      <Link className={`button small ${changed > 0 ? "" : "plain"}`} href={links.review(conversation)} aria-label={t.reviewChanges(face === "dev" ? t.review : t.changes, changed)}>
        <GitCompare size={16} aria-hidden="true" />
        <span className="wide-only">{face === "dev" ? t.review : t.changes}</span>{" "}
        {changed > 0 && <span className="badge accent">{changed}</span>}
      </Link>
      <IconButton icon={FolderTree} label={t.files} pressed={panel === "files"} onClick={() => onPanel(panel === "files" ? null : "files")} />
      {face === "user" && onReplay && <IconButton icon={ListRestart} label={t.lookBack} onClick={onReplay} />}
      {face === "dev" && (
        <span className="not-tight">
          <IconButton icon={Activity} label={t.traffic} pressed={panel === "traffic"} onClick={() => onPanel(panel === "traffic" ? null : "traffic")} />
        </span>
      )}
      {face === "dev" && (
        <Menu
          label={t.moreActions}
          icon={Ellipsis}
          items={[
            { label: t.fork, icon: GitFork, onPick: onFork },
            { label: t.replay, icon: ListRestart, onPick: onReplay ?? (() => toast(t.nothingToReplay)) },
            { label: t.compact, icon: Shrink, onPick: compact },
            { label: t.attempts, icon: FlaskConical, onPick: () => go(links.attempts(conversation)) },
            { label: t.traffic, icon: Activity, onPick: () => onPanel("traffic") },
            "line",
            ...SWITCHES.map(([flag, Icon, label]) => ({
              label,
              icon: Icon,
              checked: flagOf(state, facts, flag),
              onPick: () => onToggle(flag, !flagOf(state, facts, flag)),
            })),
            {
              label: t.tracing,
              icon: Play,
              checked: facts?.enable_tracing === true,
              onPick: () => void api.settings(conversation, { enable_tracing: !facts?.enable_tracing }).catch(complain),
            },
          ]}
        />
      )}
    </header>
  );
});
