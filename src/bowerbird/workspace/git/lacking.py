"""What is said where git misses objects: whose repository lacks which, and what to do about it.

Here: telling a damaged repository of the user's from commits of the agent that are not whole. Not here:
recognising that an object is missing (`GitFailed.lacking`), what else of a landing fails.
"""

import shlex

import msgspec

from bowerbird.workspace.git.repository import Repository
from bowerbird.workspace.git.running import Git, GitFailed

_LIMIT_S = 10.0


def reason_of(error: Exception, repository: Repository) -> str:
    """Return why git did not do something, for people; git's own words where no object is missing."""
    name = error.lacking if isinstance(error, GitFailed) else None
    if name is None:
        return str(error)
    yours = _users_lack(repository)
    if yours is None:
        return (
            f"object {name[:12]} is missing or damaged, and with it commits of the agent: "
            "they stay on the branch, files land all the same"
        )
    place = repository.work_tree or repository.git_dir
    git = f"git -C {shlex.quote(str(place))}"
    return (
        f"your own repository at {place} is damaged: object {yours[:12]} is missing or cannot be read. "
        f"`{git} fsck` names all that is, `{git} fetch` brings back what a remote has. Until then commits of "
        "the agent stay on the branch, files land all the same"
    )


def _users_lack(repository: Repository) -> str | None:
    """Return an object that the user's repository lacks where the branch began; None for none."""
    start = repository.refs().resolved("HEAD", new=False)
    if start is None:
        return None
    theirs = msgspec.structs.replace(Git(repository.git_dir), time_limit_s=_LIMIT_S)
    for how in (("--objects", "--no-walk"), ()):  # the files of that commit, and the commits before it
        try:
            theirs.run("rev-list", "--quiet", *how, start)
        except GitFailed as error:
            return error.lacking
    return None
