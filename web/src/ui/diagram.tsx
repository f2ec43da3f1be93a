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
  const [drawn, setDrawn] = useState<Drawn | "bad" | "away" | null>(null);
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
    let address = "";
    let here = true;
    import("./mermaid.ts")
      .then(({ picture }) => picture(text, dark))
      .then(
        ({ svg, width }) => {
          if (!here) return;
          address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
          setDrawn({ address, width });
        },
        (error: unknown) => here && setDrawn(isAway(error) ? "away" : "bad"),
      );
    return () => {
      here = false;
      if (address) URL.revokeObjectURL(address);
    };
  }, [text, dark, tries]);
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
