import type { Event } from "./event.ts";

/** One event a line, as JSON; throws for what is none. */
export function parse(text: string): Event[] {
  return text.split("\n").filter((line) => line.trim()).map((line) => {
    const found = JSON.parse(line);
    if (found.kind === "sale" && Number.isInteger(found.cents)) return { kind: "sale", cents: found.cents };
    if (found.kind === "gift" && typeof found.to === "string") return { kind: "gift", to: found.to };
    throw new Error(`no event: ${line}`);
  });
}
