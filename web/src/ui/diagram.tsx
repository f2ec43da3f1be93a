/**
 * A diagram as a picture: what is drawn is an image, in which nothing runs and nothing is fetched. Its source is one
 * press away, and stays where it cannot be drawn.
 */

import { Code2, Workflow } from "lucide-react";
import { useEffect, useState } from "react";
import { t } from "../text.ts";
import { isAway } from "./browser.ts";
import { CodeBlock, CopyButton } from "./code.tsx";

const AGAIN_MS = 15_000;

interface Drawn {
  address: string;
  width: number;
}

/** What was drawn last, by its text and theme: what is scrolled out of a list and back is there at once. */
const pictures = new Map<string, Drawn>();
const MOST_PICTURES = 60;

function keep(name: string, drawn: Drawn): void {
  pictures.set(name, drawn);
  for (const [oldest, { address }] of pictures) {
    if (pictures.size <= MOST_PICTURES) break;
    pictures.delete(oldest);
    URL.revokeObjectURL(address); // an image that shows it has read it
  }
}

/** Return the picture when it can be shown without a moment of nothing. */
async function made(text: string, dark: boolean): Promise<Drawn> {
  const { picture } = await import("./mermaid.ts");
  const { svg, width } = await picture(text, dark);
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = address;
  try {
    await image.decode();
  } catch (error) {
    URL.revokeObjectURL(address);
    throw error;
  }
  return { address, width };
}

const isDark = (): boolean => document.documentElement.dataset["theme"] === "dark";

function useDark(): boolean {
  const [dark, setDark] = useState(isDark);
  useEffect(() => {
    const watch = new MutationObserver(() => setDark(isDark()));
    watch.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => watch.disconnect();
  }, []);
  return dark;
}

/** Return the picture of a diagram; null until it is there, "bad" when it cannot be drawn, "away" when not now. */
function usePicture(text: string): Drawn | "bad" | "away" | null {
  const dark = useDark();
  const name = `${dark} ${text}`;
  const [drawn, setDrawn] = useState<Drawn | "bad" | "away" | null>(() => pictures.get(name) ?? null);
  const [tries, setTries] = useState(0);
  // What draws it is fetched with the first diagram: without a connection, later.
  useEffect(() => {
    if (drawn !== "away") return;
    const again = (): void => setTries((count) => count + 1);
    const timer = setInterval(again, AGAIN_MS);
    addEventListener("online", again);
    return () => {
      clearInterval(timer);
      removeEventListener("online", again);
    };
  }, [drawn]);
  useEffect(() => {
    let here = true;
    const known = pictures.get(name);
    if (known) setDrawn(known);
    else
      made(text, dark).then(
        (found) => {
          keep(name, found);
          if (here) setDrawn(found);
        },
        (error: unknown) => here && setDrawn(isAway(error) ? "away" : "bad"),
      );
    return () => {
      here = false;
    };
  }, [name, text, dark, tries]);
  return drawn;
}

export function Diagram({ text }: { text: string }) {
  const drawn = usePicture(text);
  const [failed, setFailed] = useState(false);
  const [source, setSource] = useState(false);
  if (drawn === null || drawn === "bad" || drawn === "away" || failed) {
    return (
      <>
        <CodeBlock text={text} language="mermaid" />
        {drawn !== null && <p className="muted small-note">{drawn === "away" ? t.awayDiagram : t.badDiagram}</p>}
      </>
    );
  }
  const Icon = source ? Workflow : Code2;
  return (
    <figure className="code-block diagram">
      <div className="code-head">
        <span>{t.diagram}</span>
        <span className="actions">
          <button type="button" className="button plain small" aria-pressed={source} onClick={() => setSource(!source)}>
            <Icon size={14} aria-hidden="true" />
            {source ? t.showDiagram : t.showSource}
          </button>
          <CopyButton text={text} />
        </span>
      </div>
      {source ? (
        <pre tabIndex={0} aria-label={t.codeBlock("mermaid")}>
          <code>{text}</code>
        </pre>
      ) : (
        <div className="picture" tabIndex={0} role="group" aria-label={t.diagram}>
          <img src={drawn.address} width={drawn.width} alt={t.diagramOf(text.trim().split("\n")[0] ?? "")} onError={() => setFailed(true)} />
        </div>
      )}
    </figure>
  );
}
