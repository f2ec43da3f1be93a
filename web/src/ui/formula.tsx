/** A formula in a text; its source until what draws it is here, and where it cannot be drawn. */

import { memo, useEffect, useMemo, useState } from "react";
import { t } from "../text.ts";

type MathParts = typeof import("./math.ts");

let parts: MathParts | null = null;

/** Return what draws formulas as soon as it is here; it is fetched when it is wanted. */
export function useMath(wanted: boolean): MathParts | null {
  const [here, setHere] = useState(parts);
  useEffect(() => {
    if (!wanted || here) return;
    let stays = true;
    import("./math.ts").then(
      (loaded) => {
        parts = loaded;
        if (stays) setHere(loaded);
      },
      () => undefined, // offline: the source stays
    );
    return () => {
      stays = false;
    };
  }, [wanted, here]);
  return wanted ? here : null;
}

export const Formula = memo(function Formula({ tex, display = false }: { tex: string; display?: boolean }) {
  const math = useMath(true);
  const html = useMemo(() => math?.drawn(tex, display) ?? null, [math, tex, display]);
  if (html === null) {
    const source = <code title={math ? t.badFormula : undefined}>{tex}</code>;
    return display ? <pre className="formula-source" tabIndex={0}>{source}</pre> : source;
  }
  if (!display) return <span className="formula" dangerouslySetInnerHTML={{ __html: html }} />;
  return <div className="formula display" tabIndex={0} role="group" aria-label={t.formula} dangerouslySetInnerHTML={{ __html: html }} />;
});
