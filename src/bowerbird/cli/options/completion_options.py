"""Options of `completion` and of what its scripts call (UI-49).

Here: names, types and help. Not here: the scripts, the words that complete (`completing.py`).
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option


def add_completion(application: typer.Typer, call: Callable[..., int]) -> None:
    """Add both commands."""

    @application.command("completion")
    def completion(  # pyright: ignore[reportUnusedFunction] - registered
        shell_name: Annotated[
            str | None, Argument(metavar="bash|zsh|fish", help="Default: the shell you use.")
        ] = None,
        install: Annotated[bool, Option("--install", help="Put it where that shell looks for it.")] = False,
    ) -> int:
        """Print the completion script of a shell, or install it."""
        return call("completing", "completion", name=shell_name, install=install)

    @application.command("complete-words", hidden=True, context_settings={"ignore_unknown_options": True})
    def complete_words(words: Annotated[list[str] | None, Argument()] = None) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Print what may stand in place of the last word, for the completion scripts."""
        return call("completing", "complete_words", words=words or [])
