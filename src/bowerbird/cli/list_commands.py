"""`bowerbird tools`, `bowerbird skills` and `bowerbird agents` (UI-47).

Here: printing the lists. Not here: which of them there are.
"""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.cli.exits import DONE
from bowerbird.cli.review_commands import opened
from bowerbird.cli.shell import Shell, directory_of
from bowerbird.cli.shell import run as run_async
from bowerbird.cli.text import one_line, table

if TYPE_CHECKING:
    from bowerbird.app.application import Application


def tools(shell: Shell, *, json: bool) -> int:
    """List the tools that sessions are offered, with their effect classes."""
    from bowerbird.app.application import make_data_dir
    from bowerbird.app.maker import offered_tools
    from bowerbird.app.sandboxes import listed_processes
    from bowerbird.skills import SkillLibrary

    directory = Path.cwd()
    loaded = shell.load(directory)
    section = loaded.settings.skills
    library = SkillLibrary(directory, section.directory) if section.enabled else None
    tiers = tuple(loaded.settings.model_router.tiers) if loaded.settings.model_router.enabled else ()
    processes = run_async(
        lambda: listed_processes(loaded.settings, make_data_dir(loaded.settings.agent.data_dir))
    )
    offered = offered_tools(loaded.settings, library, processes=processes, attended=True, tiers=tiers)
    if json:
        data = [
            {
                "name": tool.name,
                "description": tool.description,
                "effect": str(tool.effect),
                "aliases": list(tool.aliases),
                "input_schema": tool.input_schema,
            }
            for tool in offered
        ]
        shell.terminal.write(json_text.dumps(data, ensure_ascii=False, indent=2) + "\n")
        return DONE
    rows = [[tool.name, str(tool.effect), one_line(tool.description, 120)] for tool in offered]
    for line in table(rows, width=shell.terminal.width):
        shell.terminal.line(line)
    for name, reason in list(processes.absent.items())[:1]:
        shell.terminal.note(f"{name} and other process tools are missing: {reason}", "yellow")
    return DONE


def skills(shell: Shell, *, json: bool, workspace: str | None) -> int:
    """List skills, hidden ones with the reason."""
    from bowerbird.skills import SkillLibrary

    directory = directory_of(workspace)
    section = shell.load(directory).settings.skills
    if not section.enabled:
        shell.terminal.note("skills are off (skills.enabled)")
        return DONE
    found = SkillLibrary(directory, section.directory).all()
    if json:
        data = [
            {
                "name": skill.name,
                "description": skill.description,
                "hidden": skill.hidden,
                "bundled": skill.bundled,
            }
            for skill in found
        ]
        shell.terminal.write(json_text.dumps(data, ensure_ascii=False, indent=2) + "\n")
        return DONE
    rows = [
        [
            skill.name,
            "bundled" if skill.bundled else "yours",
            one_line(skill.hidden or skill.description, 200),
        ]
        for skill in found
    ]
    for line in table(rows, width=shell.terminal.width):
        shell.terminal.line(line)
    return DONE


def agents(shell: Shell, *, json: bool, workspace: str | None) -> int:
    """List the types of subagents, custom ones too."""

    async def work(application: "Application", _: Path) -> int:
        children = application.maker.children
        assert children is not None, "an open application has what runs subagents"
        kinds = sorted(children.tree.types.values(), key=lambda kind: kind.name)
        if json:
            data = [
                {
                    "name": kind.name,
                    "description": kind.description,
                    "model": kind.model or None,
                    "tools": None if kind.tools is None else sorted(kind.tools),
                }
                for kind in kinds
            ]
            shell.terminal.write(json_text.dumps(data, ensure_ascii=False, indent=2) + "\n")
            return DONE
        rows = [[kind.name, one_line(kind.description, 200)] for kind in kinds]
        for line in table(rows, width=shell.terminal.width):
            shell.terminal.line(line)
        return DONE

    return opened(shell, workspace, work)
