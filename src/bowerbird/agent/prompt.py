"""What an agent is told: default instructions, presets, and the system blocks of a turn (AG-65 … AG-67).

Here: texts and their order. Not here: memory and skill files (their packages read them), the tools'
own descriptions, when a turn begins.

Blocks are built anew every turn and hold no clock and no random id: unchanged files give
byte-identical blocks, so that providers can cache them (MO-53).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.lines import lines_of
from bowerbird.core.threads import in_thread

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

MAX_FILES = 200
FILES_HEAD = "Files:"
TASK_GUIDANCE = (
    "You can delegate with task: a subagent works on its own fork of your branch, and what it changed is "
    "merged into your branch when it ends. Several tasks in one message run at the same time: delegate parts "
    "that do not depend on each other, and work that would fill this conversation with reading. A subagent "
    "sees nothing of this conversation: say in its prompt everything it needs."
)
PLANNING = (
    "Plan mode: look and plan only. Calls that change anything are refused until a person has approved the "
    "plan. Hand it in whole with exit_plan_mode."
)
BASE_TOOLS = (
    "read_file", "list_files", "ls", "search_files", "write_file", "edit_file", "delete_file", "move_file",
    "show_changes", "run_python_code", "run_python_file", "think",
)  # fmt: skip

_USES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("list_files", "ls"), "see what is there"),
    (("search_files", "list_symbols", "find_references"), "find a text or a name"),
    (("read_file",), "read a file before you say or change anything about it"),
    (("write_file", "edit_file", "delete_file", "move_file", "apply_patch"), "change files"),
    (("run_python_code", "run_python_file", "run_python"), "compute; never compute in your head"),
    (("bash",), "run commands and tests"),
    (("show_changes",), "see your changes so far"),
    (("think",), "reason before acting and before finishing"),
)


def get_default_instructions(workdir: str | Path | None = None, tools: Sequence[str] = BASE_TOOLS) -> str:
    """Return the instructions an agent has when none are given.

    Args:
        workdir: the directory the agent works on; None = it starts from nothing.
        tools: names of the tools really offered; only these are mentioned.

    Example:
        >>> "run_python_code" in get_default_instructions("/p", tools=["read_file"])
        False
    """
    have = set(tools)
    place = (
        f"You work on the directory {workdir}." if workdir is not None else "You work in an empty directory."
    )
    parts = [
        f"You are an agent that does a job with tools. {place} All paths are relative to it.",
        "You work on a branch of it: every change stays on the branch until a person reviews and lands it, "
        "so change files freely where the task asks for it, and nowhere else.",
    ]
    uses = [
        f"- {', '.join(name for name in names if name in have)}: {use}"
        for names, use in _USES
        if have.intersection(names)
    ]
    if uses:
        parts.append("Tools:\n" + "\n".join(uses))
    parts.append("Plan:\n" + "\n".join(f"{n}. {step}" for n, step in enumerate(_plan(have), 1)))
    if "read_file" in have:
        parts.append(
            "When the input names an inputs_file, the previews show only its beginning: read that file, or "
            "load it with Python where you can, for the whole data."
        )
    return "\n\n".join(parts)


def _plan(have: set[str]) -> list[str]:
    look = [t for t in ("list_files", "search_files") if t in have]
    steps = [f"List and search ({', '.join(look)}) to find what the task is about."] if look else []
    if "read_file" in have:
        steps.append("Read the files that matter.")
    steps.append("Do the work in small steps, and use a result before you take the next step.")
    checks = "check every result for errors, that every part of the task is done"
    steps.append(f"Before finishing {'use think: ' if 'think' in have else ''}{checks}.")
    steps.append("Answer: say what you found or did, briefly, with file names where they help.")
    return steps


def get_subagent_tools_guidance() -> str:
    """Return what an agent that can delegate is told about it; added at run time."""
    return (
        "You can delegate with spawn_subagents: each subagent works on its own fork of your branch, all run "
        "at the same time, and you get each one's answer and its diff. Delegate parts that do not depend on "
        "each other; say in each task everything it needs, because a subagent sees nothing of this "
        "conversation. Nothing of a fork reaches your branch by itself: look with read_subagent, take all or "
        "some paths with merge_subagent, and drop the rest with discard_subagent. Only files are merged, not "
        "Python variables."
    )


def delegation_block(types: str, *, full: bool) -> str:
    """Return the system block of a run with subagents.

    Args:
        types: the lines that name the types of subagents.
        full: more is offered than `task`.
    """
    return f"{get_subagent_tools_guidance() if full else TASK_GUIDANCE}\n\n{types}"


def get_subagent_instructions() -> str:
    """Return the instructions that a subagent starts from."""
    return (
        "You are a subagent with one task, on your own fork of the files. Do exactly that task with your "
        "tools; nobody can answer questions. Your changes stay on the fork until your caller merges them. "
        "Read before you change, check results for errors, and end with a short answer: what you found or "
        "did, which files you changed, and what is left open."
    )


# ---------------------------------------------------------------- presets

BUNDLED_PROMPTS = Path(__file__).parent / "prompts"


class Preset(msgspec.Struct, frozen=True):
    """A named prompt: `PROMPT.md` with `name` and `description` above its text."""

    name: str
    description: str
    text: str

    def for_workspace(self, workspace: str | Path | None) -> str:
        """Return the text with `{workspace}` replaced."""
        return self.text.replace(
            "{workspace}", str(workspace) if workspace is not None else "an empty directory"
        )


def list_presets(prompts_dir: Path | None = None) -> dict[str, Path]:
    """Return preset name → its file; those of `prompts_dir` come before the bundled ones."""
    found: dict[str, Path] = {}
    for root in (BUNDLED_PROMPTS, prompts_dir):
        if root is not None and root.is_dir():
            found.update({p.parent.name: p for p in sorted(root.glob("*/PROMPT.md"))})
    return dict(sorted(found.items()))


def load_preset(name: str, prompts_dir: Path | None = None) -> Preset:
    """Return the preset `name`.

    Raises:
        InvalidArgument: there is none (the message lists those there are), or its file cannot be read.
    """
    from bowerbird.core.errors import InvalidArgument

    for root in (prompts_dir, BUNDLED_PROMPTS):
        if root is None or Path(name).name != name or "\0" in name:
            continue
        path = root / name / "PROMPT.md"
        try:
            head, text = _front_matter(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgument(f"preset {name!r} cannot be read ({path}): {error}") from error
        return Preset(head.get("name") or name, head.get("description", ""), text.strip())
    raise InvalidArgument(f"no preset is named {name!r}; there are {', '.join(list_presets(prompts_dir))}")


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    if not text.startswith("---\n"):
        return {}, text
    head, marker, body = text[4:].partition("\n---\n")
    if not marker:
        return {}, text
    pairs = (line.partition(":") for line in lines_of(head) if ":" in line)
    return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}, body


# ---------------------------------------------------------------- system blocks


_HIDDEN = (
    "Hidden from you and from commands, by the setting workspace.hide: {}. They exist for the user; if git "
    "shows them as deleted, keep that out of commits."
)
_MOST_HIDDEN = 10


async def hidden_names(branch: "Branch") -> list[str]:
    """Return names at the workspace's root that the branch does not show, at most ten."""
    if branch.root is None:
        return []
    return await in_thread(branch.ground.hidden_names, "/", _MOST_HIDDEN)


def system_blocks(
    instructions: str,
    *,
    workspace: str | Path | None = None,
    sandbox: str = "",
    hidden: Sequence[str] = (),
    memory: Sequence[tuple[str, str]] = (),
    skills: str = "",
    subagents: str = "",
) -> tuple[str, ...]:
    """Return the blocks of a turn in their order; the loop adds the last one, the identity.

    Args:
        instructions: of the preset or the agent.
        workspace: the directory, for the line that names it.
        sandbox: one line about the tier that commands run in; "" where no process runs.
        hidden: what of the workspace's root is kept from the agent (`hidden_names`).
        memory: (file name, text) of the memory files, in their order.
        skills: lines `name: description`.
        subagents: guidance and types of subagents.
    """
    place = f"Workspace: {workspace}" if workspace is not None else "Workspace: none (empty branch)"
    unseen = _HIDDEN.format(", ".join(hidden)) if hidden else ""
    blocks = [instructions, "\n".join(filter(None, (place, sandbox, unseen)))]
    blocks += [f'<memory file="{name}">\n{text.rstrip()}\n</memory>' for name, text in memory]
    if skills:
        blocks.append(f"Skills (read one with read_skill before you use it):\n{skills}")
    if subagents:
        blocks.append(subagents)
    return tuple(block for block in blocks if block)


def identity_block(agent: str, model: str, tier: str) -> str:
    """Return the last block: who runs, on which model."""
    return f"Agent: {agent}. Model: {model}{f', tier {tier}' if tier else ''}."


async def files_block(branch: "Branch") -> str:
    """Return the block that small models choose paths from: `Files:`, then at most 200 paths."""
    listed = await branch.list_files("**/*", limit=MAX_FILES)
    return "\n".join((FILES_HEAD, *(path.lstrip("/") for path in listed["files"])))
