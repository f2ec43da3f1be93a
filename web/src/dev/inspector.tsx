/** The traffic inspector: every frame, and model calls as pairs (UI-34). */

import { Copy, Eraser, FileDown, Pause, Play, X } from "lucide-react";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { Virtuoso } from "react-virtuoso";
import { api } from "../api/client.ts";
import type { LiveConversation } from "../state/live.ts";
import { changeOf, pairTraces, type Sample, type TracePair } from "../state/traffic.ts";
import { seconds, short, size } from "../state/words.ts";
import { t } from "../text.ts";
import { copyText } from "../ui/browser.ts";
import { Empty, IconButton } from "../ui/kit.tsx";
import { useLeaving } from "../ui/leaving.ts";
import { PANEL_IS_SHEET, useMedia } from "../ui/media.ts";
import { complain, toast } from "../ui/toasts.tsx";

const GROUPS: Readonly<Record<string, RegExp>> = {
  text: /^(text_delta|thinking|message_end)/,
  tools: /^(tool_|branch_update|todo|task)/,
  turns: /^(turn_|done|interrupted|message$|interrupt$|steer|cancel|resume|hello|accepted)/,
  errors: /^(error|retrying|model_fallback)/,
};

function clock(at: number): string {
  const time = new Date(at);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}

function Frame({ sample, open, onOpen }: { sample: Sample; open: boolean; onOpen: () => void }) {
  const trace = sample.type.startsWith("llm_");
  return (
    <div className={`frame ${trace ? "trace" : ""}`}>
      <button type="button" aria-expanded={open} onClick={onOpen}>
        <span aria-label={sample.direction === "in" ? t.received : t.sentWord}>{sample.direction === "in" ? "←" : "→"}</span>
        <span className="type">{sample.type}</span>
        <span className="figure">{size(sample.size)}</span>
        <span className="figure">{clock(sample.at)}</span>
      </button>
      {open && <pre tabIndex={0}>{JSON.stringify(sample.body, null, 2)}</pre>}
    </div>
  );
}

/** What this request adds to the one before it; that is mostly all one wants to know of it. */
function Since({ before, now }: { before: object; now: object }) {
  const { kept, gone, added, members } = changeOf(before, now);
  return (
    <pre tabIndex={0} aria-label={t.sinceBefore}>
      {`${t.sameMessages(kept, gone)}\n`}
      {added.length > 0 && JSON.stringify(added, null, 2)}
      {Object.keys(members).length > 0 && `\n${JSON.stringify(members, null, 2)}`}
    </pre>
  );
}

function Trace({ pair, before, open, onOpen }: { pair: TracePair; before: TracePair | null; open: boolean; onOpen: () => void }) {
  const { request, response } = pair;
  const [whole, setWhole] = useState(false);
  const usage = response?.usage;
  return (
    <div className="frame trace" data-testid="trace">
      <button type="button" aria-expanded={open} onClick={onOpen}>
        <span>#{pair.seq}</span>
        <span className="type">{request?.model ?? t.model}</span>
        <span className="figure">{t.traceCounts(request?.message_count ?? 0, request?.tool_count ?? 0)}</span>
        <span className="figure">
          {usage ? `${short(usage.input_tokens ?? 0)}→${short(usage.output_tokens ?? 0)}` : "…"}
        </span>
        <span className="figure">{typeof response?.ms === "number" ? seconds(response.ms) : ""}</span>
      </button>
      {open && (
        <>
          {before?.request && (
            <div className="tabs" role="group" aria-label={t.request}>
              <button type="button" className="button small plain" aria-pressed={!whole} onClick={() => setWhole(false)}>
                {t.sinceBefore}
              </button>
              <button type="button" className="button small plain" aria-pressed={whole} onClick={() => setWhole(true)}>
                {t.wholeRequest}
              </button>
            </div>
          )}
          {before?.request && request && !whole ? (
            <Since before={before.request} now={request} />
          ) : (
            <pre tabIndex={0} aria-label={t.request}>
              {JSON.stringify(request, null, 2)}
            </pre>
          )}
          <pre tabIndex={0} aria-label={t.response}>
            {JSON.stringify(response, null, 2)}
          </pre>
        </>
      )}
    </div>
  );
}

function download(samples: readonly Sample[]): void {
  const lines = samples.map((sample) =>
    JSON.stringify({ at: new Date(sample.at).toISOString(), direction: sample.direction, ...{ frame: sample.body } }),
  );
  const address = URL.createObjectURL(new Blob([`${lines.join("\n")}\n`], { type: "application/x-ndjson" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = "traffic.jsonl";
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

function useTraces(live: LiveConversation, samples: readonly Sample[], wanted: boolean): TracePair[] {
  const [stored, setStored] = useState<Record<string, unknown>[]>([]);
  useEffect(() => {
    if (wanted) api.traces(live.id).then(setStored, complain);
  }, [live.id, wanted]);
  return useMemo(
    () => (wanted ? pairTraces([...stored.map((body) => ({ body, at: 0 })), ...samples]) : []),
    [stored, samples, wanted],
  );
}

export default function Inspector({ live, onClose }: { live: LiveConversation; onClose: () => void }) {
  const { traffic } = live;
  const samples = useSyncExternalStore(traffic.subscribe, traffic.samples);
  const [group, setGroup] = useState<string>("all");
  const [query, setQuery] = useState("");
  const [open, setOpen] = useState<string | null>(null);
  const [paused, setPaused] = useState(traffic.paused);
  const traces = useTraces(live, samples, group === "traces");
  const shown = useMemo(() => {
    const wanted = query.trim().toLowerCase();
    return samples.filter((sample) => {
      if (group !== "all" && group !== "traces" && !GROUPS[group]?.test(sample.type)) return false;
      return !wanted || JSON.stringify(sample.body).toLowerCase().includes(wanted);
    });
  }, [samples, group, query]);
  const toggle = (key: string): void => setOpen(open === key ? null : key);
  const none = group === "traces" ? traces.length === 0 : shown.length === 0;
  const sheet = useMedia(PANEL_IS_SHEET);
  useLeaving(sheet, onClose);
  return (
    <aside className="panel wide" aria-label={t.traffic} onKeyDown={(event) => !sheet && event.key === "Escape" && onClose()}>
      <div className="panel-head">
        <h2>{t.traffic}</h2>
        <IconButton
          icon={paused ? Play : Pause}
          label={paused ? t.continueRecording : t.pause}
          pressed={paused}
          onClick={() => {
            traffic.pause(!paused);
            setPaused(!paused);
          }}
        />
        <IconButton icon={Eraser} label={t.clear} onClick={() => traffic.clear()} />
        <IconButton
          icon={Copy}
          label={t.copyAll}
          onClick={() => void copyText(shown.map((sample) => JSON.stringify(sample.body)).join("\n")).then(() => toast(t.copied), complain)}
        />
        <IconButton icon={FileDown} label={t.exportJsonl} onClick={() => download(shown)} />
        <IconButton icon={X} label={t.close} onClick={onClose} />
      </div>
      <div className="inspect-tools" role="group" aria-label={t.filter}>
        {(["all", "text", "tools", "turns", "errors", "traces"] as const).map((name) => (
          <button key={name} type="button" className="button small plain" aria-pressed={group === name} onClick={() => setGroup(name)}>
            {t.groups[name]}
          </button>
        ))}
        <input className="input" type="search" aria-label={t.search} placeholder={t.search} value={query} onChange={(event) => setQuery(event.target.value)} />
      </div>
      {none && (
        <Empty icon={Pause} title={group === "traces" ? t.noTraces : t.noTraffic}>
          <p>{group === "traces" ? t.noTracesText : t.noTrafficText}</p>
        </Empty>
      )}
      {!none && group === "traces" && (
        <Virtuoso
          className="files"
          data={traces}
          computeItemKey={(_, pair) => pair.key}
          itemContent={(at, pair) => <Trace pair={pair} before={traces[at - 1] ?? null} open={open === pair.key} onOpen={() => toggle(pair.key)} />}
        />
      )}
      {!none && group !== "traces" && (
        <Virtuoso
          className="files"
          data={shown as Sample[]}
          followOutput="auto"
          initialTopMostItemIndex={Math.max(shown.length - 1, 0)}
          computeItemKey={(_, sample) => sample.number}
          itemContent={(_, sample) => (
            <Frame sample={sample} open={open === String(sample.number)} onOpen={() => toggle(String(sample.number))} />
          )}
        />
      )}
    </aside>
  );
}
