/** What changed between two versions of a memory: lines that came and lines that went. Pure. */

export function linesChanged(before: string, after: string): { added: string[]; removed: string[] } {
  const lines = (text: string): string[] => text.split("\n").filter((line) => line.trim() !== "");
  const [old, now] = [new Set(lines(before)), new Set(lines(after))];
  return { added: [...now].filter((line) => !old.has(line)), removed: [...old].filter((line) => !now.has(line)) };
}
