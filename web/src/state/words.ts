/** Numbers and times in words, by the browser's locale (UI-39). Pure but for the clock. */

import type { UsageRow } from "../api/types.ts";
import { t } from "../text.ts";
import { serverNow } from "./clock.ts";

/** Made when it is first wanted: the tables of a language cost a phone a tenth of a second at the start (UI-93). */
function later<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

const number = later(() => new Intl.NumberFormat());
const relative = later(() => new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" }));

/** 12400 → "12.4k". */
export function short(value: number): string {
  if (value < 1000) return String(value);
  if (value < 999_500) return `${trim(value / 1000)}k`;
  return `${trim(value / 1_000_000)}M`;
}

function trim(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(1).replace(/\.0$/, "");
}

export function dollars(value: number | null | undefined): string {
  if (value === null || value === undefined) return t.unpriced;
  if (value === 0) return "$0";
  return value < 0.1 ? `$${value.toFixed(4).replace(/0$/, "")}` : `$${value.toFixed(2)}`;
}

/** What a row's calls cost, as far as they have a price. */
export function costOf(row: Pick<UsageRow, "cost" | "known_cost" | "unpriced_calls" | "calls">): string {
  const unpriced = row.unpriced_calls ?? 0;
  if (row.cost !== null || unpriced === row.calls) return dollars(row.cost);
  return t.partlyPriced(dollars(row.known_cost ?? 0), unpriced);
}

/** 0.004 → "<1 %". */
export function percent(share: number): string {
  return share > 0 && share < 0.01 ? "<1 %" : `${Math.round(share * 100)} %`;
}

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${trim(bytes / 1024)} KB`;
  return `${trim(bytes / 1024 / 1024)} MB`;
}

export function seconds(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const whole = Math.round(ms / 1000);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

export function ago(iso: string, now = serverNow()): string {
  const passed = (new Date(iso).getTime() - now) / 1000;
  const steps: readonly (readonly [number, Intl.RelativeTimeFormatUnit])[] = [
    [60, "second"],
    [3600, "minute"],
    [86_400, "hour"],
    [86_400 * 30, "day"],
    [86_400 * 365, "month"],
  ];
  if (Math.abs(passed) < 45) return t.justNow;
  let unit = 1;
  for (const [limit, name] of steps) {
    const count = Math.round(passed / unit);
    // Judged after rounding: 59.7 seconds are a minute, not 60 seconds.
    if (Math.abs(count) < limit / unit) return relative().format(count, name);
    unit = limit;
  }
  return relative().format(Math.round(passed / unit), "year");
}

export function moment(iso: string): string {
  return new Date(iso).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** "2026-11-20" → "Nov 20", or "Nov 20, 2026" with the year, by the browser's locale. */
export function day(key: string, withYear = false): string {
  const [year = 0, month = 1, date = 1] = key.split("-").map(Number);
  return new Date(year, month - 1, date).toLocaleDateString(undefined, { month: "short", day: "numeric", ...(withYear ? { year: "numeric" } : {}) });
}

/** 50000 → "50,000". */
export function thousands(value: number): string {
  return number().format(value);
}

/** "2026-11" → "Nov 2026", by the browser's locale. */
export function month(key: string): string {
  const [year = 0, number = 1] = key.split("-").map(Number);
  return new Date(year, number - 1, 1).toLocaleDateString(undefined, { month: "short", year: "numeric" });
}

export function count(value: number, one: string, many: string): string {
  return `${number().format(value)} ${value === 1 ? one : many}`;
}
