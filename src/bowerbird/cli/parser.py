"""The options of every command (UI-41 … UI-50).

Here: names, types and help of options; each command hands them to its own module, which is
imported only then. Not here: what a command does, options given anywhere (`terminal/command_line.py`).
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option
from typer._click import exceptions as click_errors  # typer carries its parser's errors here

from bowerbird.cli.client.opening import require_place
from bowerbird.cli.terminal.command_line import join_optional_values
from bowerbird.cli.terminal.exits import PIPE, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell

_EPILOG = (
    "Anywhere: --config FILE, --env-file FILE, --data-dir DIR, --no-color, --server URL (work with a running "
    "server; its token in BOWERBIRD_TOKEN). "
    'A first word that is not a command is a prompt: bowerbird "fix the failing test".'
)
_PLAIN = {"help_option_names": ["-h", "--help"]}

Id = Annotated[
    str | None, Argument(metavar="ID", help="Session, or 4 characters of it; default: newest here.")
]
NeededId = Annotated[str, Argument(metavar="ID", help="Session, or at least 4 characters of its id.")]
Paths = Annotated[list[str] | None, Argument(metavar="PATHS…", help="Only these files or directories.")]
Json = Annotated[bool, Option("--json", help="Write JSON.")]
Where = Annotated[str | None, Option("-w", "--workspace", help="Directory; default: the current one.")]
Yes = Annotated[
    bool, Option("--yes", "-y", help="Answer yes inside the stated policy; never for marked paths.")
]


def parse_and_run(arguments: Sequence[str], shell: Shell) -> int:
    """Parse `arguments` and run their command; returns its exit code.

    Raises:
        CliExit: code 2 for wrong usage, with the nearest name of an unknown option.
    """
    application = application_of(shell, only_run=arguments[0] == "run")
    _leave_out_others(application, arguments[0])
    command = typer.main.get_command(application)
    try:
        code = command.main(join_optional_values(arguments), prog_name="bowerbird", standalone_mode=False)
    except click_errors.UsageError as error:
        where = f" (see: {error.ctx.command_path} --help)" if error.ctx else ""
        raise CliExit(USAGE, f"{error.format_message()}{where}") from None
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # in a help page
            raise CliExit(PIPE) from None
        raise
    return code if isinstance(code, int) else 0


def _leave_out_others(application: typer.Typer, name: str) -> None:
    """Keep one command or group, where one has that name: typer would look at the options of eighty."""
    commands = [each for each in application.registered_commands if each.name == name]
    groups = [each for each in application.registered_groups if each.name == name]
    if commands or groups:
        application.registered_commands[:], application.registered_groups[:] = commands, groups


def application_of(shell: Shell, *, only_run: bool = False) -> typer.Typer:
    """Return the parser of every command; each imports what it does when it is called.

    Args:
        only_run: leave all but `run` out: making sixty commands takes longer than parsing one.
    """
    application = typer.Typer(
        name="bowerbird",
        help="AI agents that work on a branch of your files; nothing reaches your files until you land it.",
        epilog=_EPILOG,
        add_completion=False,
        no_args_is_help=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=_PLAIN,
    )

    def call(module: str, function: str, **options: Any) -> int:
        require_place(shell, module, function)
        target: Callable[..., int] = getattr(import_module(f"bowerbird.cli.{module}"), function)
        try:
            return target(shell, **options)
        except BrokenPipeError:
            raise CliExit(PIPE) from None  # the parser would make it a plain failure

    @application.callback()
    def top(version: Annotated[bool, Option("--version", "-V", help="Show the version.")] = False) -> None:  # pyright: ignore[reportUnusedFunction, reportUnusedParameter] - registered; main() answers it
        pass

    _add_run(application, call)
    if only_run:
        return application
    _add_others(application, call)
    return application


Call = Callable[..., int]


def _add_others(application: typer.Typer, call: Call) -> None:
    from bowerbird.cli.options.attempt_options import add_attempt
    from bowerbird.cli.options.completion_options import add_completion
    from bowerbird.cli.options.landing_options import add_landings
    from bowerbird.cli.options.live_options import add_live_commands
    from bowerbird.cli.options.mcp_options import mcp_group
    from bowerbird.cli.options.memory_options import memory_group
    from bowerbird.cli.options.more_options import add_more_commands
    from bowerbird.cli.options.serving_options import add_serving, sandbox_group
    from bowerbird.cli.options.state_options import state_group
    from bowerbird.cli.options.token_options import token_group

    _add_review(application, call)
    add_landings(application, call)
    _add_discard(application, call)
    _add_sessions(application, call)
    _add_rest(application, call)
    add_completion(application, call)
    add_serving(application, call)
    add_live_commands(application, call)
    add_attempt(application, call)
    add_more_commands(application, call)
    application.add_typer(_config(call), name="config")
    application.add_typer(_model(call), name="model")
    application.add_typer(sandbox_group(call), name="sandbox")
    groups = {
        "mcp": mcp_group,
        "token": token_group,
        "memory": memory_group,
        "state": state_group,
    }
    for name, group in groups.items():
        application.add_typer(group(call), name=name)


def _add_run(application: typer.Typer, call: Call) -> None:
    @application.command("run")
    def run(  # pyright: ignore[reportUnusedFunction] - typer names every parameter
        prompt: Annotated[
            str | None, Argument(metavar="PROMPT", help="What to do; none: interactive.")
        ] = None,
        preset: Annotated[str | None, Option("-p", "--preset", help="Preset of instructions.")] = None,
        workspace: Where = None,
        model: Annotated[str | None, Option("-m", "--model", help="provider:model.")] = None,
        no_memory: Annotated[bool, Option("--no-memory", help="Read and write no memory.")] = False,
        approval: Annotated[
            bool | None, Option("--approval/--no-approval", help="Ask before every unsafe tool.")
        ] = None,
        tools: Annotated[str | None, Option("--tools", help="Tools it is offered: default or full.")] = None,
        network: Annotated[
            str | None,
            Option("--network", metavar="HOST,…", help="What commands may reach: hosts, or registries."),
        ] = None,
        max_turns: Annotated[int | None, Option("--max-turns", help="Model calls per turn.")] = None,
        teams: Annotated[bool, Option("--teams", help="The agent may have teammates.")] = False,
        plan: Annotated[bool, Option("--plan", help="Plan before doing.")] = False,
        thinking: Annotated[
            bool | None, Option("--thinking/--no-thinking", help="Let the model think first.")
        ] = None,
        thinking_effort: Annotated[str | None, Option("--thinking-effort", help="high or max.")] = None,
        resume: Annotated[
            str | None,
            Option("--resume", metavar="[ID]", help="Continue this session; without ID: the newest here."),
        ] = None,
        land: Annotated[str | None, Option("--land", help="review, turn or step.")] = None,
        max_cost: Annotated[float | None, Option("--max-cost", metavar="USD", help="Money limit.")] = None,
        timeout: Annotated[
            float | None, Option("--timeout", metavar="S", help="Time limit of a run.")
        ] = None,
        yes: Yes = False,
        output: Annotated[str, Option("--output", help="text, json or stream-json.")] = "text",
        json: Annotated[bool, Option("--json", help="Short for --output json.")] = False,
        quiet: Annotated[bool, Option("--quiet", "-q", help="Only the answer and errors.")] = False,
    ) -> int:
        """Work on a directory. One turn with PROMPT or piped input, else a conversation."""
        options = {name: value for name, value in locals().items() if name != "call"}
        if options.pop("json"):
            options["output"] = "json"
        return call("run.run", "run", **options)


def _add_review(application: typer.Typer, call: Call) -> None:
    @application.command("diff")
    def diff(  # pyright: ignore[reportUnusedFunction] - registered
        session: Id = None,
        paths: Paths = None,
        stat: Annotated[bool, Option("--stat", help="Only counts per file.")] = False,
        json: Json = False,
        workspace: Where = None,
    ) -> int:
        """Show what a session changed. In a pipe it is a patch for `git apply`."""
        return call("review.commands", "diff", session=session, paths=paths or [], stat=stat, json=json,
                    workspace=workspace)  # fmt: skip

    @application.command("land")
    def land(  # pyright: ignore[reportUnusedFunction] - typer names every parameter
        session: Id = None,
        paths: Paths = None,
        patch: Annotated[bool, Option("--patch", "-p", help="Ask hunk by hunk.")] = False,
        yes: Yes = False,
        accept: Annotated[
            list[str] | None, Option("--accept", metavar="PATH", help="Accept a marked path.")
        ] = None,
        include: Annotated[
            list[str] | None, Option("--include", metavar="PATH", help="Land an ignored path, too.")
        ] = None,
        force: Annotated[
            bool, Option("--force", help="Take the branch's version where both changed.")
        ] = False,
        partial: Annotated[bool, Option("--partial", help="Land what can land, report the rest.")] = False,
        check: Annotated[bool, Option("--check", help="Land only if landing.check passes.")] = False,
        commits: Annotated[
            Literal["fetch", "fast-forward", "fast_forward", "never"] | None,
            Option(
                "--commits",
                metavar="VALUE",
                help="What becomes of commits: fetch, fast-forward or never; default: git.land.",
            ),
        ] = None,
        commit: Annotated[bool, Option("--commit", help="Commit what lands, with your own git.")] = False,
        message: Annotated[
            str | None, Option("-m", "--message", metavar="TEXT", help="The commit's; implies --commit.")
        ] = None,
        branch: Annotated[
            str | None,
            Option("--branch", metavar="NAME", help="Only commit, on this git branch; no file changes."),
        ] = None,
        json: Json = False,
        workspace: Where = None,
    ) -> int:
        """Write a branch's changes into the directory. `undo` takes them back."""
        return call("review.commands", "land", session=session, paths=paths or [], patch=patch, yes=yes,
                    accept=accept or [], include=include or [], force=force, partial=partial, check=check,
                    commits=commits, commit=commit, message=message, branch=branch, json=json,
                    workspace=workspace)  # fmt: skip


def _add_discard(application: typer.Typer, call: Call) -> None:
    @application.command("discard")
    def discard(session: Id = None, yes: Yes = False, json: Json = False, workspace: Where = None) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Throw a branch's unlanded changes away. They can be restored for 7 days."""
        return call("review.commands", "discard", session=session, yes=yes, json=json, workspace=workspace)


def _add_sessions(application: typer.Typer, call: Call) -> None:
    @application.command("sessions")
    def sessions(  # pyright: ignore[reportUnusedFunction] - registered
        every: Annotated[bool, Option("--all", help="Of every directory.")] = False,
        grep: Annotated[
            str | None,
            Option("--grep", metavar="WORDS", help="Those with these words, said or in the title."),
        ] = None,
        json: Json = False,
        workspace: Where = None,
    ) -> int:
        """List sessions of this directory."""
        return call("run.sessions", "sessions", every=every, grep=grep, json=json, workspace=workspace)

    @application.command("show")
    def show(session: Id = None, json: Json = False, workspace: Where = None) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Show one session: its turns, messages and changes."""
        return call("run.sessions", "show", session=session, json=json, workspace=workspace)

    @application.command("rename")
    def rename(session: NeededId, title: Annotated[str, Argument(metavar="TITLE")]) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Give a session another title."""
        return call("run.sessions", "rename", session=session, title=title)

    @application.command("delete")
    def delete(session: NeededId, yes: Yes = False) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Delete a session and its branch (restorable for 7 days)."""
        return call("run.sessions", "delete", session=session, yes=yes)

    @application.command("resume")
    def resume(  # pyright: ignore[reportUnusedFunction] - typer names every parameter
        session: Id = None,
        output: Annotated[str, Option("--output", help="text, json or stream-json.")] = "text",
        json: Annotated[bool, Option("--json", help="Short for --output json.")] = False,
        quiet: Annotated[bool, Option("--quiet", "-q", help="Only the answer and errors.")] = False,
        timeout: Annotated[
            float | None, Option("--timeout", metavar="S", help="Time limit of the run.")
        ] = None,
        yes: Yes = False,
        workspace: Where = None,
    ) -> int:
        """Continue an unfinished turn; without one, open the session."""
        return call("run.run", "resume", session=session, output="json" if json else output, quiet=quiet,
                    timeout=timeout, yes=yes, workspace=workspace)  # fmt: skip

    @application.command("fork")
    def fork(  # pyright: ignore[reportUnusedFunction] - registered
        session: Id = None,
        turn: Annotated[int | None, Option("--turn", metavar="N", help="As it was after turn N.")] = None,
        json: Json = False,
        workspace: Where = None,
    ) -> int:
        """Copy a session, with its files as they were after a turn."""
        return call("run.sessions", "fork", session=session, turn=turn, json=json, workspace=workspace)


def _add_rest(application: typer.Typer, call: Call) -> None:
    @application.command("doctor")
    def doctor(  # pyright: ignore[reportUnusedFunction] - registered
        online: Annotated[bool, Option("--online", help="Also make one tiny model call.")] = False,
        json: Json = False,
    ) -> int:
        """Check what is needed, and say how to fix what is missing."""
        return call("admin.doctor", "doctor", online=online, json=json)

    @application.command("tools")
    def tools(json: Json = False) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """List the tools that agents are offered."""
        return call("admin.lists", "tools", json=json)

    @application.command("skills")
    def skills(json: Json = False, workspace: Where = None) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """List the skills found in this directory and the bundled ones."""
        return call("admin.lists", "skills", json=json, workspace=workspace)


def _config(call: Call) -> typer.Typer:
    group = typer.Typer(help="Check, show and explain settings.", rich_markup_mode=None, no_args_is_help=True)

    @group.command("check")
    def check(  # pyright: ignore[reportUnusedFunction] - registered
        strict: Annotated[bool, Option("--strict", help="Exit 3 on warnings.")] = False, json: Json = False
    ) -> int:
        """Load the settings like a server would and report everything wrong; no network."""
        return call("admin.config", "check", strict=strict, json=json)

    @group.command("show")
    def show(  # pyright: ignore[reportUnusedFunction] - registered
        key: Annotated[str | None, Argument(metavar="KEY", help="A key or section.")] = None,
        origin: Annotated[bool, Option("--origin", help="Who set each value, and what it hid.")] = False,
        json: Json = False,
        every: Annotated[bool, Option("--all", help="Defaults too.")] = False,
        command: Annotated[bool, Option("--command", help="As commands in this directory see them.")] = False,
    ) -> int:
        """Show the values in effect that differ from their defaults."""
        return call("admin.config", "show", key=key, origin=origin, json=json, every=every, command=command)

    @group.command("explain")
    def explain(key: Annotated[str, Argument(metavar="KEY")], json: Json = False) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Explain one key: meaning, type, default, range, variables."""
        return call("admin.config", "explain", key=key, json=json)

    from bowerbird.cli.options.config_options import add_config_rest

    add_config_rest(group, call)
    return group


def _model(call: Call) -> typer.Typer:
    group = typer.Typer(
        help="Models: try one, fetch the embedded one.", rich_markup_mode=None, no_args_is_help=True
    )

    @group.command("check")
    def check(  # pyright: ignore[reportUnusedFunction] - registered
        name: Annotated[str | None, Argument(metavar="[MODEL]", help="Unset: the configured one.")] = None,
        whole: Annotated[
            bool, Option("--whole-window", help="Try 95 % of the window, whatever that costs.")
        ] = False,
        write: Annotated[bool, Option("--write", help="Put what follows into the settings file.")] = False,
        json: Json = False,
    ) -> int:
        """Try in a few minutes whether a model, as its endpoint serves it, can do an agent's work."""
        return call("admin.models", "check", name=name, whole=whole, write=write, json=json)

    @group.command("fetch")
    def fetch(  # pyright: ignore[reportUnusedFunction] - registered
        small: Annotated[
            bool, Option("--small", help="The 0.5B model (0.5 GB) instead of the 1.5B one.")
        ] = False,
        source: Annotated[
            str | None, Option("--from", metavar="FILE", help="A GGUF file that is already here.")
        ] = None,
    ) -> int:
        """Fetch the embedded model into the data directory and verify it."""
        return call("admin.models", "fetch", small=small, source=source)

    return group


def flags_of(path: Sequence[str]) -> list[str]:
    """Return the options of a command, for completion; none for an unknown one."""
    options = [
        option
        for parameter in getattr(_command_at(path), "params", ())
        for option in (*parameter.opts, *parameter.secondary_opts)
    ]
    return [option for option in options if option.startswith("--")]


def commands_of(path: Sequence[str]) -> list[str]:
    """Return the commands below a command, for completion; none where it has none."""
    below: dict[str, Any] = getattr(_command_at(path), "commands", {})
    return [name for name, command in below.items() if not command.hidden]


def _command_at(path: Sequence[str]) -> Any:
    from bowerbird.cli.terminal.command_line import Anywhere
    from bowerbird.cli.terminal.terminal import Terminal

    command: Any = typer.main.get_command(application_of(Shell(Anywhere(), Terminal())))
    for name in path:
        command = getattr(command, "commands", {}).get(name)
    return command
