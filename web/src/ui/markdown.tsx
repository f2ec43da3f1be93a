/**
 * Markdown of agents and files (UI-17). While a text grows, what is finished of it is neither parsed nor laid out
 * again, and what is out of sight is not drawn (UI-92).
 *
 * Not here: what each element becomes (`prose.tsx`), where a text is cut (`blocks.ts`).
 */

import { memo, useEffect, useMemo, useRef, useState } from "react";
import { t } from "../text.ts";
import { DEFINITION, grownBlocks, type Blocks } from "./blocks.ts";
import { bounded } from "./bounded.ts";
import { Boundary } from "./boundary.tsx";
import { CopyButton } from "./code.tsx";
import { useMath } from "./formula.tsx";
import { withFormulas } from "./formulas.ts";
import { elements } from "./parse.ts";
import { finished, growing, safeAddress } from "./prose.tsx";

const SHOWN = 10_000;
const MORE = 100_000;

/** What of a block is too much to draw, as it was written: a piece at a time. */
function Rest({ text }: { text: string }) {
  const [most, setMost] = useState(SHOWN);
  return (
    <div className="code-block">
      <div className="code-head">
        <span>{t.tooMuchMarkup}</span>
        <CopyButton text={text} />
      </div>
      <pre tabIndex={0} dir="auto" className="as-written">
        {text.slice(0, most)}
      </pre>
      {text.length > most && (
        <button type="button" className="button small" onClick={() => setMost(most + MORE)}>
          {t.showMoreOf(text.length - most)}
        </button>
      )}
    </div>
  );
}

const Block = memo(function Block({ text, ready }: { text: string; ready: boolean }) {
  const { text: drawn, rest } = useMemo(() => bounded(text), [text]);
  if (!rest) return <Drawn text={text} ready={ready} />;
  return (
    <>
      {drawn && <Drawn text={drawn} ready={ready} />}
      <Rest text={rest} />
    </>
  );
});

const Drawn = memo(function Drawn({ text, ready }: { text: string; ready: boolean }) {
  const formulas = useMemo(() => withFormulas(text), [text]);
  const math = useMath(formulas !== null)?.mathPlugin ?? null;
  return elements((math && formulas) ?? text, { components: ready ? finished : growing, safe: safeAddress, math });
});

interface GroupProps {
  blocks: readonly string[];
  /** The last of them is still being written. */
  grows: boolean;
}

const sameGroup = (before: GroupProps, now: GroupProps): boolean =>
  before.grows === now.grows && before.blocks.length === now.blocks.length && before.blocks.every((block, at) => block === now.blocks[at]);

/** Some blocks: one thing to compare, to lay out and to leave undrawn for a long text, not hundreds. */
const Group = memo(function Group({ blocks, grows }: GroupProps) {
  return (
    <div className="blocks">
      {blocks.map((block, at) => (
        <Boundary key={at} of={block} instead={<pre>{block}</pre>}>
          <Block text={block} ready={!grows || at < blocks.length - 1} />
        </Boundary>
      ))}
    </div>
  );
}, sameGroup);

const GROUP = 16;
/** With more groups than this those that nobody looks at are not laid out. */
const FEW = 4;
/** So many groups are drawn at once, and so many more each time the browser has answered what was done meanwhile. */
const AT_ONCE = 16;
const MORE_GROUPS = 8;
/** A block that is longer than this while it grows is drawn again when it has grown by a part of itself, or waits. */
const LONG = 4000;
const PART = 20;
const WAIT_MS = 400;

/** Return the blocks to draw now: a long one that grows would cost the square of its length. */
function useCalm(blocks: readonly string[], done: boolean): readonly string[] {
  const drawn = useRef(blocks);
  const [, draw] = useState(0);
  const [now, before] = [blocks.at(-1) ?? "", drawn.current.at(-1) ?? ""];
  const isSame = blocks.length === drawn.current.length && before.length > LONG && now.startsWith(before);
  const waits = !done && isSame && now !== before && now.length - before.length < before.length / PART;
  if (!waits) drawn.current = blocks;
  const latest = useRef(blocks);
  latest.current = blocks;
  useEffect(() => {
    if (!waits) return;
    const timer = setTimeout(() => {
      drawn.current = latest.current;
      draw((times) => times + 1);
    }, WAIT_MS);
    return () => clearTimeout(timer);
  }, [waits]);
  return drawn.current;
}

/** Return how many groups to draw now: a text of thousands of blocks comes in parts (UI-92). */
function useParts(count: number): number {
  const [most, setMost] = useState(AT_ONCE);
  useEffect(() => {
    if (count <= most) return;
    const timer = setTimeout(() => setMost(most + MORE_GROUPS));
    return () => clearTimeout(timer);
  }, [count, most]);
  return Math.min(count, most);
}

/** Draw Markdown; while it grows only its last block is parsed again. */
export const Markdown = memo(function Markdown({ text, done = true }: { text: string; done?: boolean }) {
  const grown = useRef<Blocks | null>(null);
  // Footnotes and references by name stand in other blocks than what names them.
  const blocks = useMemo(() => {
    if (done && DEFINITION.test(text) && bounded(text).rest === "") return [text];
    grown.current = grownBlocks(grown.current, text);
    return grown.current.blocks;
  }, [text, done]);
  const shown = useCalm(blocks, done);
  const groups: (readonly string[])[] = [];
  for (let at = 0; at < shown.length; at += GROUP) groups.push(shown.slice(at, at + GROUP));
  const parts = useParts(groups.length);
  return (
    <div className={groups.length > FEW ? "prose long" : "prose"}>
      {groups.slice(0, parts).map((group, at) => (
        <Group key={at} blocks={group} grows={!done && at === groups.length - 1} />
      ))}
    </div>
  );
});
