/** Formulas in Markdown: found where they are, and not in money, variables or code (UI-92). */

import assert from "node:assert/strict";
import { test } from "node:test";
import { withFormulas } from "../src/ui/formulas.ts";

test("each way to write a formula becomes one", () => {
  assert.equal(withFormulas("so $a^2$ is"), "so $a^2$ is");
  assert.equal(withFormulas("so \\(a^2\\) is"), "so $a^2$ is");
  assert.equal(withFormulas("\\[\nx = 1\n\\]"), "$$\nx = 1\n$$");
  assert.equal(withFormulas("$$ x = 1 $$"), "$$\nx = 1\n$$");
  assert.equal(withFormulas("  $$x$$"), "  $$\n  x\n  $$");
  assert.equal(withFormulas("the sum $$x$$ here"), "the sum $$x$$ here");
  assert.equal(withFormulas("\\(a\\$b\\)"), "$$a\\$b$$");
});

test("money, variables, code and what is half written are none", () => {
  for (const text of ["$5 and $10", "US$5-US$6", "$HOME/bin:$PATH", "`$x$`", "``a ` $x$``", "```sh\necho $a$\n```", "\\$x\\$", "$$", "$ x $", "$x", "\\(x", "$a\n\nb$", "no"]) {
    assert.equal(withFormulas(text), null, text);
  }
});

test("beside a formula the other dollars are escaped, code is not", () => {
  assert.equal(withFormulas("$x$ costs $5, `$y$`\n```\n$z$\n```\n"), "$x$ costs \\$5, `$y$`\n```\n$z$\n```\n");
  assert.equal(withFormulas("an unclosed ` and $x$"), "an unclosed ` and $x$");
});

test("what opens and never closes takes time by its length", () => {
  const begin = performance.now();
  for (const mark of ["\\(", "\\[", "$$ ", "$", "`$", "``` $x$ "]) withFormulas(mark.repeat(60_000));
  assert.ok(performance.now() - begin < 20_000);
});
