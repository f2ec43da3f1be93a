/** Places in files that a text names, and links that lead to files of the branch (UI-92). */

import assert from "node:assert/strict";
import { test } from "node:test";
import { linkedFile, placeAddress, placeOf, remarkPlaces } from "../src/ui/places.ts";

interface Node {
  type: string;
  value?: string;
  url?: string;
  children?: Node[];
}

function linked(value: string, type = "text"): Node[] {
  const tree: Node = { type: "root", children: [{ type: "paragraph", children: [{ type, value }] }] };
  remarkPlaces()(tree);
  return tree.children?.[0]?.children ?? [];
}

const addresses = (nodes: Node[]): string[] => nodes.flatMap((node) => (node.type === "link" ? [node.url ?? ""] : []));

test("path and line become a link, words around them stay", () => {
  const nodes = linked("see src/app.js:3 and lib/a.py:10-20, Makefile:7.");
  assert.deepEqual(addresses(nodes), ["#file:%2Fsrc%2Fapp.js:3", "#file:%2Flib%2Fa.py:10", "#file:%2FMakefile:7"]);
  assert.equal(nodes.map((node) => node.value ?? node.children?.[0]?.value).join(""), "see src/app.js:3 and lib/a.py:10-20, Makefile:7.");
  assert.deepEqual(addresses(linked("app.ts:5:12", "inlineCode")), ["#file:%2Fapp.ts:5"]);
});

test("times, hosts, addresses and what leads out of the branch are none", () => {
  for (const text of ["at 12:30", "example.com:80", "http://a.test/b.html:3", "v1.2:3", "../../etc/passwd.txt:1", "x@y.py:3x", "a:3"]) {
    assert.deepEqual(addresses(linked(text)), [], text);
  }
  assert.deepEqual(addresses(linked("run app.ts:5 now", "inlineCode")), []);
});

test("a link leads to a file unless it is an address", () => {
  assert.deepEqual(linkedFile("src/app.js"), { path: "/src/app.js", line: null });
  assert.deepEqual(linkedFile("./src/../app.js#L12"), { path: "/app.js", line: 12 });
  assert.deepEqual(linkedFile("/a%20b.md:4"), { path: "/a b.md", line: 4 });
  for (const address of ["https://a.test", "mailto:a@b.test", "javascript:alert(1)", "//evil.test/x.js", "#top", "../x.js", "\\\\host\\x", "a%ZZ.js", "?q=1", ""]) {
    assert.equal(linkedFile(address), null, address);
  }
});

test("an address holds its place", () => {
  for (const place of [{ path: "/a:b/ü #?.py", line: 3 }, { path: "/x", line: null }]) assert.deepEqual(placeOf(placeAddress(place)), place);
  for (const address of ["#file:", "#file:%ZZ:1", "#other:/a", "https://a.test"]) assert.equal(placeOf(address), null);
});

test("a link, a reference and a definition are not entered, their addresses are looked at", () => {
  const tree: Node = { type: "root", children: [{ type: "link", url: "src/a.py", children: [{ type: "text", value: "b.py:3" }] }, { type: "definition", url: "https://a.test" }] };
  remarkPlaces()(tree);
  assert.deepEqual(tree.children?.map((node) => node.url), ["#file:%2Fsrc%2Fa.py", "https://a.test"]);
  assert.equal(tree.children?.[0]?.children?.[0]?.type, "text");
});

test("long runs of words take time by their length", () => {
  const begin = performance.now();
  for (const text of ["a/".repeat(50_000), "a.".repeat(50_000), "+".repeat(100_000), "a:1 ".repeat(20_000)]) linked(text);
  assert.ok(performance.now() - begin < 20_000);
});
