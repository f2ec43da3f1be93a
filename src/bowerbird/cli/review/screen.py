"""What the review needs of where it is shown: a command's terminal, or the prompt.

Here: that protocol. Not here: the two that have it (`commands.py`, `run/slash_commands.py`), what is asked.
"""

from typing import Protocol

from bowerbird.cli.terminal.terminal import Ability


class Screen(Protocol):
    """Where the review is shown and answered."""

    @property
    def width(self) -> int:
        """Columns now."""
        ...

    @property
    def stream(self) -> Ability:
        """What drawn text goes to: says whether it has colours."""
        ...

    @property
    def can_ask(self) -> bool:
        """Whether a person sits here."""
        ...

    @property
    def prefix(self) -> str:
        """What stands before the name of a command here: `bowerbird `, or `/`."""
        ...

    def warn(self, text: str, style: str = "") -> None:
        """Say what a question is about, or what is wrong."""
        ...

    def tell(self, text: str, style: str = "") -> None:
        """Say a result."""
        ...

    def note(self, text: str) -> None:
        """Say what could be done next."""
        ...

    def draw(self, text: str) -> None:
        """Show drawn text."""
        ...

    async def page(self, drawn: str, plain: str) -> None:
        """Show long text in a pager, `drawn` where there are colours; the next question comes after it."""
        ...

    def step(self, bar: str) -> None:
        """Show how far a long landing is; "" when it is over. Of any thread."""
        ...

    async def ask(self, question: str) -> str | None:
        """Return the line that answers; None when the input has ended."""
        ...
