"""The bodies that ask for a commit of what lands or is taken back (UI-78).

Here: their shapes. Not here: what is committed (`workspace/git/`).
"""

from typing import Annotated

from pydantic import Field

from bowerbird.server.routes.common import StrictBody


class Commit(StrictBody):
    """One commit on the branch that is checked out. `message` null = from the title.

    A server makes it without hooks and signature: those are programs of whoever owns the repository.
    """

    message: Annotated[str | None, Field(max_length=20_000)] = None


class CommitOn(Commit):
    """One commit of what lands. With `branch` it goes on that git branch, not checked out; no file lands."""

    branch: Annotated[str | None, Field(min_length=1, max_length=200)] = None
