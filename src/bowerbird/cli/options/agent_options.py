"""The options of `bowerbird agents …` (PR-8).

Here: names, types and help. Not here: what the commands do (`run/agents.py`).
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

Json = Annotated[bool, Option("--json", help="Write JSON.")]
Name = Annotated[str, Argument(metavar="NAME", help="The agent, as `agents list` names it.")]
Directory = Annotated[
    str | None, Option("-w", "--workspace", metavar="DIR", help="Directory; default: the current one.")
]


def agents_group(call: Callable[..., int]) -> typer.Typer:
    """Return the group; `call(module, function, **options)` runs a command."""
    group = typer.Typer(
        help="Other vendors' agents, and the types of subagents.", rich_markup_mode=None, no_args_is_help=True
    )

    @group.command("list")
    def list_(workspace: Directory = None, json: Json = False) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """List the agents that work can be given to, and whether each can be used now."""
        return call("run.agents", "list_agents", workspace=workspace, json=json)

    @group.command("probe")
    def probe(  # pyright: ignore[reportUnusedFunction] - registered
        name: Name,
        live: Annotated[bool, Option("--live", help="Ask the vendor, too: is the key right?")] = False,
        json: Json = False,
    ) -> int:
        """Say whether an agent can be used, and what is missing."""
        return call("run.agents", "probe", name=name, live=live, json=json)

    @group.command("memory")
    def memory(  # pyright: ignore[reportUnusedFunction] - registered
        session: Annotated[str, Argument(metavar="SESSION", help="Id, as `agents runs` names it.")],
        json: Json = False,
    ) -> int:
        """Show what was said in a session with an agent: the newest 50 messages."""
        return call("run.agents", "memory", session=session, json=json)

    @group.command("runs")
    def runs(json: Json = False) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """List what agents did last, newest first."""
        return call("run.agents", "runs", json=json)

    @group.command("install")
    def install(  # pyright: ignore[reportUnusedFunction] - registered
        names: Annotated[list[str], Argument(metavar="NAME...", help="Agents whose programs to install.")],
    ) -> int:
        """Install vendors' programs with npm or pip, in pinned versions, into Bowerbird's data directory."""
        return call("admin.agents", "install", names=names)

    _add_run(group, call)
    return group


def _add_run(group: typer.Typer, call: Callable[..., int]) -> None:
    @group.command("run")
    def run(  # pyright: ignore[reportUnusedFunction] - registered
        name: Name,
        prompt: Annotated[str, Argument(metavar="PROMPT", help="What to do; - reads standard input.")],
        session: Annotated[
            str | None, Option("--session", metavar="SESSION", help="Go on in this session with the agent.")
        ] = None,
        model: Annotated[str | None, Option("-m", "--model", help="The vendor's name of a model.")] = None,
        timeout: Annotated[
            float | None, Option("--timeout", metavar="SECONDS", min=0.1, help="Longest run.")
        ] = None,
        max_tokens: Annotated[
            int | None, Option("--max-tokens", metavar="N", min=1, help="Longest answer of a model.")
        ] = None,
        max_cost: Annotated[
            float | None,
            Option("--max-cost", metavar="USD", min=0.000001, help="Most that a program may spend."),
        ] = None,
        fork: Annotated[
            str | None, Option("--fork", metavar="ID", help="Work on a fork of this session's branch.")
        ] = None,
        no_branch: Annotated[
            bool,
            Option("--no-branch", help="Land its changes unreviewed; needs providers.allow_direct."),
        ] = False,
        workspace: Directory = None,
        json: Json = False,
    ) -> int:
        """Give an agent work; what it changes is on a branch of a session, to review and land."""
        given = {
            "prompt": prompt, "session_id": session, "model": model, "timeout": timeout,
            "max_tokens": max_tokens, "max_cost": max_cost, "conversation_id": fork,
            "direct": no_branch or None,
        }  # fmt: skip
        wanted = {key: value for key, value in given.items() if value is not None}
        return call("run.agents", "run", name=name, wanted=wanted, workspace=workspace, json=json)
