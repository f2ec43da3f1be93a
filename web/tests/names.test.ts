/** Names for @: the best fit first, in a large tree too; what a message names goes along (UI-73). */

import assert from "node:assert/strict";
import { test } from "node:test";
import { attachedText, mentionOf, mentioned, typedMention, withMention, withoutAttachments, type Found } from "../src/state/mentions.ts";
import { Names } from "../src/state/names.ts";

test("the last part that begins so comes first, letters in order last", () => {
  const names = new Names(["src/app.py", "docs/wrap.md", "lib/a/p_p.py", "apple/x.txt"]);
  assert.deepEqual(names.find("app"), ["apple/", "src/app.py", "apple/x.txt", "lib/a/p_p.py"]);
  assert.deepEqual(names.find("src/"), ["src/", "src/app.py"]);
  assert.deepEqual(names.find("WRAP"), ["docs/wrap.md"]);
  assert.deepEqual(names.find("nothing"), []);
  assert.equal(names.find("").length, 8);
  assert.deepEqual(names.inside("lib/"), ["lib/a/p_p.py"]);
  assert.ok(names.has("lib/a/") && !names.has("lib/b"));
  assert.deepEqual(new Names([]).find("a"), []);
});

test("a key in a tree of 100,000 files is one pass", () => {
  const names = new Names(Array.from({ length: 100_000 }, (_, at) => `package_${at % 300}/module_${at}.py`));
  const begin = performance.now();
  for (const typed of ["m", "module_99999", "p299/m5", "zzz", "package_1/"]) names.find(typed);
  assert.ok(performance.now() - begin < 5000);
});

test("a name is typed after an @ that begins a word", () => {
  assert.deepEqual(typedMention("look at @src/a"), { typed: "src/a", length: 6 });
  assert.deepEqual(typedMention('look at @"two w'), { typed: "two w", length: 7 });
  assert.deepEqual(typedMention("@"), { typed: "", length: 1 });
  assert.equal(typedMention("mail me@home"), null);
  assert.equal(typedMention("@a.py and"), null);
});

test("what is picked stands in the text, a file with a blank behind it", () => {
  assert.equal(mentionOf("two words.txt"), '@"two words.txt"');
  assert.deepEqual(withMention("see @ap!", 7, "src/app.py"), { text: "see @src/app.py !", at: 16 });
  assert.deepEqual(withMention("see @ap", 7, "apple/"), { text: "see @apple/", at: 11 });
});

test("names are found in a text, each once", () => {
  assert.deepEqual(mentioned('compare @a.py, @"b c.py" @a.py, and me@home'), ["a.py,", "b c.py"]);
});

test("small files go along with their text, large ones, binary ones and directories as what they are", async () => {
  const files: Record<string, Found> = {
    "a.py": { kind: "file", path: "a.py", size: 4, content: "x = 1\n```\n" },
    "big.txt": { kind: "file", path: "big.txt", size: 90_000, content: "x".repeat(90_000) },
    "cat.png": { kind: "file", path: "cat.png", size: 5, content: null },
    lib: { kind: "directory", path: "lib/", files: ["lib/a", "lib/b"] },
  };
  const text = await attachedText("look at @a.py, @big.txt @cat.png @lib/ @nobody", async (path) => files[path] ?? null);
  assert.match(text, /^look at @a\.py, @big\.txt @cat\.png @lib\/ @nobody\n\n/);
  assert.match(text, /a\.py[^]*x = 1/);
  assert.match(text, /big\.txt/);
  assert.ok(text.length < 3000);
  assert.match(text, /lib\/a/);
  assert.ok(!text.includes("nobody\n\nnobody"));
  assert.equal(await attachedText("nothing", async () => null), "nothing");
  assert.deepEqual(withoutAttachments(text), { words: "look at @a.py, @big.txt @cat.png @lib/ @nobody", names: ["a.py", "big.txt", "cat.png", "lib/"] });
  assert.deepEqual(withoutAttachments('I wrote <attachment path="x">'), { words: 'I wrote <attachment path="x">', names: [] });
});
