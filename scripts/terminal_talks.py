"""Stories of the conversation at the terminal (UI-52 … UI-57).

Here: the stories and what is typed in them. Not here: the stage (`terminal_stage.py`), playing them
(`terminal_stories.py`).
"""

from typing import Any

from terminal_stage import EDITS, Stage, call, story

MARKDOWN = """# What I found

The totals are wrong for **three** reasons, see `report.py`:

1. rows are read as text
   - `load` keeps the newline
   - so does the test, which is why nobody saw it, and this sentence is long enough to be wrapped twice
2. negative rows are skipped
   1. in `total`
   2. and in `mean`

| file | rows | note |
|------|-----:|------|
| `report.py` | 12 | reads, sums |
| 日本語.txt | 1200 | wide characters 漢字 and emoji 🎉 👩‍👩‍👧 |

> A quote, with `code` in it.

```python
def total(rows):
\treturn sum(int(row) for row in rows)  # a tab before, and a line that is longer than the screen
```

- [ ] a task
- [x] another

---
Bye 👋 <https://example.org/a/very/long/address/that/nobody/can/read/in/a/terminal/of/forty/columns?query=1>
"""


@story("tools", rows=44)
def tools(stage: Stage) -> None:
    """Tools, a failed one, 5,000 lines of result, a task list."""
    todos = [
        {"content": "Read the report", "status": "completed", "activeForm": "Reading the report"},
        {"content": "Mend the sum", "status": "in_progress", "activeForm": "Mending the sum"},
        {"content": "Add a test 🧪", "status": "pending", "activeForm": "Adding a test"},
    ]
    stage.fake.script(
        {"text": "I look at the report first.", "tools": [
            call("read_file", path="report.py"), call("search_files", pattern="item_1"),
        ]},
        {"tools": [call("todo_write", items=todos)]},
        {"tools": [call("bash", command="seq 5000"), call("read_file", path="no/such/file.py")]},
        {"tools": EDITS[:1]},
        {"text": "The sum is right now. **One** file changed.", "deltas": 5, "gap_s": 0.05},
    )  # fmt: skip
    stage.chat()
    stage.snap("the prompt")
    stage.type("mend the report")
    stage.ended("One file changed.", "1 file changed: ")
    stage.snap("after the turn")
    stage.type("/show 4")
    stage.until("\n43\n")
    stage.snap("/show of 5,000 lines, in the pager")
    stage.type("q", enter=False)


@story("markdown", rows=60)
def markdown(stage: Stage) -> None:
    """A table, nested lists, code with a tab, wide characters, long lines."""
    stage.fake.script({"text": MARKDOWN, "deltas": 60, "gap_s": 0.01})
    stage.chat()
    stage.type("what is wrong?")
    stage.ended("Bye")
    stage.snap("Markdown, 80 columns")


@story("narrow", columns=40, rows=80)
def narrow(stage: Stage) -> None:
    """The same in 40 columns, with a tool before it."""
    stage.fake.script(
        {"tools": [call("write_file", path="a/very/long/path/to/a/file/名前.py", content="x = 1\n")]},
        {"text": MARKDOWN, "deltas": 60, "gap_s": 0.01},
    )
    stage.chat()
    stage.type("what is wrong with the report? 漢字漢字漢字漢字漢字漢字")
    stage.ended("Bye")
    stage.snap("Markdown, 40 columns")
    stage.type("/help")
    stage.until("/quit")
    stage.snap("/help in 40 columns")
    stage.type("/diff")
    stage.until("+x = 1")
    stage.snap("/diff in 40 columns")


@story("stop")
def stop(stage: Stage) -> None:
    """Ctrl+C in a turn, feedback, and the turn that follows."""
    stage.fake.script({"text": "word " * 400, "deltas": 400, "gap_s": 0.05})
    stage.chat()
    stage.type("talk to me")
    stage.until("word word")
    stage.snap("while it writes")
    stage.key("C-c")
    stage.until("feedback>")
    stage.snap("after Ctrl+C")
    stage.fake.script({"text": "Understood, shorter."})
    stage.type("be brief")
    stage.ended("Understood, shorter.")
    stage.key("C-c")
    stage.until("Ctrl+C again leaves")
    stage.snap("feedback answered; Ctrl+C at the prompt")
    stage.key("C-c")
    stage.until("--resume=")
    stage.snap("left")


@story("typing")
def typing(stage: Stage) -> None:
    """Typing during a turn: shown as queued, answered next."""
    slow = {"gap_s": 0.4, "deltas": 6}
    stage.fake.answer(
        lambda _body, n: {"text": f"This is answer {n}, in some words."} | (slow if n == 0 else {})
    )
    stage.chat()
    stage.type("first question")
    stage.until("writing")
    stage.type("second question, while the first is answered")
    stage.type("a third")
    stage.type("half a fourth", enter=False)
    stage.until("queued: a third")
    stage.snap("two queued, one being typed")
    stage.ended("answer 2")
    stage.snap("all answered, the typed text kept")


@story("approval", rows=40)
def approval(stage: Stage) -> None:
    """y, n with a reason, d, a."""
    stage.chat("--approval")
    stage.fake.script({"tools": [call("bash", command="rm -rf build && make all")]}, {"text": "Built."})
    stage.type("build it")
    stage.until("answer>")
    stage.snap("the question")
    stage.type("d")
    stage.until("  command: ")
    stage.snap("details")
    stage.type("n not in this directory")
    stage.ended("Built.")
    stage.snap("denied with a reason")
    stage.type("/clear")
    stage.until("a new session begins")
    stage.fake.script({"tools": [EDITS[3]]}, {"tools": [EDITS[0]]}, {"text": "Both done."})
    stage.type("write it")
    stage.until("write_file new/module.py")
    stage.type("what?")
    stage.until("y once")
    stage.type("all")
    stage.ended("Both done.")
    stage.snap("allowed for the rest")


@story("plan", rows=40)
def plan(stage: Stage) -> None:
    """/plan, feedback, approval, execution."""
    proposal = "1. change `report.py`\n2. add a module\n   - with one value\n"
    stage.chat()
    stage.type("/plan")
    stage.until("plan mode is on")
    stage.fake.script(
        {"tools": [call("exit_plan_mode", plan=proposal)]},
        {"tools": [call("exit_plan_mode", plan=proposal + "3. test it\n")]},
        {"tools": EDITS[:1]},
        {"text": "Carried out."},
    )
    stage.type("make it better")
    stage.until("y approve")
    stage.snap("the plan")
    stage.type("also test it")
    stage.until("3. test it")
    stage.type("y")
    stage.ended("Carried out.", "1 file changed: ")
    stage.snap("approved and carried out")


@story("resize")
def resize(stage: Stage) -> None:
    """The window changes while text streams."""
    stage.fake.script({"text": MARKDOWN, "deltas": 200, "gap_s": 0.02})
    stage.chat()
    stage.type("what is wrong?")
    stage.until("rows are read as text")
    stage.resize(50)
    stage.until("negative rows")
    stage.resize(100)
    stage.ended("Bye")
    stage.snap("80, then 50, then 100 columns", history=True)


@story("subagents", rows=40)
def subagents(stage: Stage) -> None:
    """Two subagents at once, then their merge."""

    def answer(body: dict[str, Any], _n: int) -> dict[str, Any]:
        said = sum(m["role"] == "assistant" for m in body["messages"])
        system = str(body["system"])
        if "main_sub" in system:
            name = "a" if "main_sub0" in system else "b"
            written = {"tools": [call("write_file", path=f"{name}.py", content="x = 1\n")], "ttft_s": 0.5}
            return (
                written if not said else {"text": f"Wrote {name}.py and looked at it twice.", "ttft_s": 0.7}
            )
        tasks = [{"task": f"write module {name}"} for name in ("a", "b")]
        steps: list[dict[str, Any]] = [
            {"text": "Two helpers do this.", "tools": [call("spawn_subagents", tasks=tasks)]},
            {"tools": [call("merge_subagent", handle=f"subagent_{n}") for n in (0, 1)]},
            {"text": "Both modules are on the branch."},
        ]
        return steps[min(said, 2)]

    stage.fake.answer(answer)
    stage.chat()
    stage.type("write two modules with subagents")
    stage.until("subagent_1 general")
    stage.snap("while they work")
    stage.until("2 files changed: ")
    stage.snap("merged")
