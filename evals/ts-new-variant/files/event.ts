export type Event =
  | { kind: "sale"; cents: number }
  | { kind: "gift"; to: string };
