/** What of a hostile block is drawn (UI-17, UI-92): little enough that the page goes on, and no word is lost. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { remarkPlaces } from "../src/ui/places.ts";
import { bounded } from "../src/ui/bounded.ts";
import { splitBlocks } from "../src/ui/blocks.ts";
import remarkGfm from "remark-gfm";
import remarkParse from "remark-parse";
import { unified, type Plugin } from "unified";

const parser = unified().use(remarkParse).use(remarkGfm).use(remarkPlaces as unknown as Plugin<[]>).freeze();
const nodesOf = (node: { children?: unknown[] }): number => 1 + (node.children ?? []).reduce((sum: number, one) => sum + nodesOf(one as { children?: unknown[] }), 0);

const HOSTILE: Record<string, string> = {
  "10,000 links": "[a](https://a.example/x) ".repeat(10_000),
  "10,000 links on lines": "[a](https://a.example/x)\n".repeat(10_000),
  "10,000 quotes in one another": "> ".repeat(10_000) + "x",
  "5,000 lists on one line": "- ".repeat(5000) + "x",
  "1,000 lists in one another": Array.from({ length: 1000 }, (_, at) => `${" ".repeat(2 * at)}- x`).join("\n"),
  "10,000 items": "- x\n".repeat(10_000),
  "a table of 1,000 by 50": `|${"a|".repeat(50)}\n|${"-|".repeat(50)}\n${`|${"b|".repeat(50)}\n`.repeat(1000)}`,
  "100,000 asterisks": "*".repeat(100_000),
  "25,000 halves of strong": "**a*".repeat(25_000),
  "100,000 brackets": "[".repeat(100_000),
  "100,000 closing brackets": "]".repeat(100_000),
  "25,000 links that do not end": "[a](".repeat(25_000),
  "100,000 backticks": "`".repeat(100_000),
  "50,000 images": "![a](https://a.example/x.png)\n".repeat(50_000),
  "30,000 tags": "<b>".repeat(30_000),
  "30,000 tildes": "~~a".repeat(30_000),
  "30,000 dollars": "$a ".repeat(30_000),
  "a fence of 5 MB that does not end": `\`\`\`\n${`${"x".repeat(79)}\n`.repeat(65_536)}`,
  "a line of a million letters": "word ".repeat(200_000),
};

for (const [name, text] of Object.entries(HOSTILE)) {
  test(`${name}: what is drawn is small, the rest is there`, () => {
    for (const block of splitBlocks(text)) {
      const { text: drawn, rest } = bounded(block);
      assert.equal(rest === "" ? drawn : drawn === "" ? rest : `${drawn}\n${rest}`, block);
      assert.ok(drawn.length <= 1_000_000 && nodesOf(parser.parse(drawn)) < 8000, name);
    }
  });
}

test("what people and agents write is drawn whole", () => {
  const table = `| a | b | c |\n| - | - | - |\n${"| one | two | three |\n".repeat(200)}`.trimEnd();
  const code = `\`\`\`py\n${"def f(a, *args, **kw): return [a[0], kw['x'] | 1]\n".repeat(3000)}\`\`\``;
  const list = Array.from({ length: 300 }, (_, at) => `${at + 1}. **Step** with [a link](https://a.example/${at})`).join("\n");
  for (const block of [table, code, list, "-".repeat(200), "> a\n> > b\n> > > c"]) assert.deepEqual(bounded(block), { text: block, rest: "" });
});
