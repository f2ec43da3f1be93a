"""Commits of an agent, made again with the user's signature where the user signs commits (GI-9).

Here: which commits, making them one by one, remembering what became of each. Not here: bringing objects in
(`arrival.py`), commits of what lands (`committing.py`).

An agent has no key. What it committed under the user's name, or under that of `git.agent_identity`, is made
again, with the same files, author, committer and times, a trailer that names the session, and the signature
of the user's own git. A commit has another id then. Each is signed once: what it became is kept in the data
directory, so that the next landing goes on from there, in whichever session. Commits of others, signed ones
and stashes stay as they are.
"""

import hashlib
import io
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from bowerbird.core.atomic import replace_file
from bowerbird.core.forms import decode
from bowerbird.workspace.git.committing import TRAILER, with_trailer
from bowerbird.workspace.git.landed_history import HistoryRules
from bowerbird.workspace.git.moving import value_of
from bowerbird.workspace.git.refs import RefMove
from bowerbird.workspace.git.repository import Repository, common_of
from bowerbird.workspace.git.running import Git, GitFailed
from bowerbird.workspace.git.users_git import UsersGit

MOST_SIGNED = 1_000
SIGN_LIMIT_S = 120.0  # somebody types a passphrase
_MOST_KNOWN = 20_000
_NOT_SIGNED = "{} not signed: "
_PERSON = re.compile(rb"(.*) <(.*)> (\d+) ([+-]\d{4})", re.DOTALL)
_IDENTITY = re.compile(r".*<(.*)>")


class Signing(msgspec.Struct, frozen=True):
    """Whether and how commits are signed as they land.

    Attributes:
        rules: `resign`, `agent_identity`. session: for the trailer. data: the data directory.
        own: the user sits here; otherwise no program of theirs runs, and nothing is signed.
    """

    rules: HistoryRules
    session: str
    data: Path
    own: bool


class Signed(msgspec.Struct, frozen=True):
    """What became of objects, by id, and what people are told of it."""

    ids: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()


class _Commit(msgspec.Struct, frozen=True):
    id: str
    header: Mapping[bytes, bytes]
    parents: tuple[str, ...]
    message: bytes

    @property
    def is_signed(self) -> bool:
        return any(name.startswith(b"gpgsig") for name in self.header)


def signed(repository: Repository, moves: Sequence[RefMove], others: Collection[str], how: Signing) -> Signed:
    """Make the new commits below some refs again, signed, where the user's configuration asks for it.

    Args:
        moves: refs whose objects are in the user's repository. others: what the branch fetched; commits below
            that are not the agent's, nor are those that the user's refs and reflogs reach.

    Returns:
        By id, what took the place of commits and tags. Where signing fails nothing does, and it says why.
    """
    user = UsersGit(repository.work_tree or repository.git_dir, True, limit_s=SIGN_LIMIT_S)
    tips = [str(move.new) for move in moves if not move.name.startswith("stash/")]
    if not tips or user.text("config", "--type=bool", "--get", "commit.gpgsign") != "true":
        return Signed()
    theirs = Git(repository.git_dir)
    try:
        making = _Making(theirs, user, how)
        commits = list(making.unsigned(tips, others))
        why = _left_because(how) if commits else ""
        if why:
            return Signed(notes=(_NOT_SIGNED.format(_many(len(commits))) + why,))
        return making.all(commits, moves)
    except (GitFailed, OSError) as error:
        return Signed(notes=(_NOT_SIGNED.format("the commits are") + str(error),))


def signed_before(data: Path, git_dir: Path) -> dict[str, str]:
    """Return what became of the commits of a repository that were signed before, by their own ids."""
    try:
        return decode(_kept_in(data, git_dir).read_bytes(), dict[str, str])
    except (OSError, msgspec.MsgspecError):
        return {}  # signing once more does no harm


def _kept_in(data: Path, git_dir: Path) -> Path:
    place = hashlib.sha256(os.fsencode(common_of(git_dir))).hexdigest()[:32]
    return data / "signed-commits" / f"{place}.json"


def _left_because(how: Signing) -> str:
    if not how.rules.resign:
        return "git.resign is false"
    if not how.own:
        return "a server runs no program of yours; land at its own machine to sign them"
    return ""


class _Making:
    """Makes commits of one repository again."""

    def __init__(self, theirs: Git, user: UsersGit, how: Signing) -> None:
        self._theirs, self._user, self._how = theirs, user, how
        self._kept = _kept_in(how.data, theirs.git_dir)
        self._known = signed_before(how.data, theirs.git_dir)
        whose = os.fsdecode(user.run("var", "GIT_COMMITTER_IDENT"))
        self._signer = whose.rpartition(">")[0] + ">"
        self._mine = {_email(whose), _email(how.rules.agent_identity)} - {""}
        self._key = self._whose_key()
        self._strangers = 0

    def unsigned(self, tips: Sequence[str], others: Collection[str]) -> Iterator[_Commit]:
        """Yield what has to be made again, parents first."""
        head = value_of(self._theirs, "HEAD")
        known = {*others, *((head,) if head else ())}
        asked = "".join(f"{line}\n" for line in (*tips, *(f"^{each}" for each in known))).encode()
        order = ("--topo-order", "--reverse", "--ignore-missing", "--stdin")
        beside = ("--not", "--branches", "--tags", "--remotes", "--reflog")
        ids = self._theirs.run("rev-list", *order, *beside, stdin=asked).decode().split()
        if len(ids) > MOST_SIGNED:
            raise GitFailed(f"more than {MOST_SIGNED:,} are not signed in one landing")
        again: set[str] = set()
        for commit in self._commits(ids):
            mine = _email(os.fsdecode(commit.header.get(b"committer", b""))) in self._mine
            if (mine and not commit.is_signed) or not again.isdisjoint(commit.parents):
                again.add(commit.id)
                yield commit
            elif not mine and not commit.is_signed:
                self._strangers += 1

    def all(self, commits: Sequence[_Commit], moves: Sequence[RefMove]) -> Signed:
        """Make them all, then point tags at them."""
        ids: dict[str, str] = {}
        made = 0
        known = {commit.id: self._known[commit.id] for commit in commits if commit.id in self._known}
        gone = self._gone(known.values())
        for commit in commits:
            if known.get(commit.id, "") not in gone:
                ids[commit.id] = known[commit.id]
                continue
            ids[commit.id] = self._again(commit, ids)
            made += 1
        if made:
            self._keep(ids)
        tags = {str(move.new) for move in moves if str(move.new) not in ids}
        ids |= {tag: new for tag in tags if (new := self._tag(tag, ids)) is not None}
        ending = "has a new id" if made == 1 else "have new ids"
        notes = [f"{_many(made)} signed with your key, and {ending}"] if made else []
        if self._strangers:
            notes.append(_NOT_SIGNED.format(_many(self._strangers)) + "the committer is somebody else")
        return Signed(ids, tuple(notes))

    def _again(self, commit: _Commit, ids: Mapping[str, str]) -> str:
        header = commit.header
        people = {name: _person(header.get(name, b"")) for name in (b"author", b"committer")}
        email = os.fsdecode(people[b"committer"][1])
        variables = {
            f"GIT_{name.decode().upper()}_{part}": os.fsdecode(value)
            for name, person in people.items()
            for part, value in zip(("NAME", "EMAIL", "DATE"), person, strict=True)
        }
        message, encoding = commit.message, os.fsdecode(header.get(b"encoding", b"utf-8"))
        words = ["-c", f"i18n.commitEncoding={encoding}", "commit-tree"]
        if email in self._mine:
            words.append(f"-S{self._key}")
            if f"\n{TRAILER}: {self._how.session}".encode() not in message:
                message = os.fsencode(with_trailer(os.fsdecode(message), self._how.session))
        for parent in commit.parents:
            words += ["-p", ids.get(parent, parent)]
        tree = header.get(b"tree", b"").decode("ascii", "replace")
        return self._user.run(*words, tree, stdin=message, variables=variables).decode().strip()

    def _whose_key(self) -> str:
        """Return whose key signs: git would ask for that of the committer, who may be the agent."""
        user = self._user
        if user.text("config", "user.signingKey") or user.text("config", "gpg.format") in ("ssh", "x509"):
            return ""
        return self._signer

    def _tag(self, tag: str, ids: Mapping[str, str]) -> str | None:
        """Return an annotated tag that points at what its commit became."""
        if self._theirs.run("cat-file", "-t", tag).strip() != b"tag":
            return None
        text = self._theirs.run("cat-file", "tag", tag)
        first, _, rest = text.partition(b"\n")
        new = ids.get(first.removeprefix(b"object ").decode("ascii", "replace"))
        if new is None:
            return None
        made = self._theirs.run(
            "hash-object", "-t", "tag", "-w", "--stdin", stdin=b"object " + new.encode() + b"\n" + rest
        )
        return made.decode().strip()

    def _commits(self, ids: Sequence[str]) -> Iterator[_Commit]:
        asked = "".join(f"{each}\n" for each in ids).encode()
        found = io.BytesIO(self._theirs.run("cat-file", "--batch", stdin=asked))
        for name in ids:
            size = int(found.readline().rsplit(b" ", 1)[-1])
            yield _parsed(name, found.read(size))
            found.read(1)

    def _gone(self, ids: Collection[str]) -> set[str]:
        """Return those that the user's repository has no more, and the empty id."""
        asked = "".join(f"{each}\n" for each in ids).encode()
        lines = (
            self._theirs.run("cat-file", "--batch-check", stdin=asked).decode().splitlines() if ids else []
        )
        return {"", *(line.partition(" ")[0] for line in lines if line.endswith(" missing"))}

    def _keep(self, ids: Mapping[str, str]) -> None:
        newest = {name: new for name, new in self._known.items() if name not in ids} | dict(ids)
        self._kept.parent.mkdir(mode=0o700, exist_ok=True)
        replace_file(self._kept, msgspec.json.encode(dict(list(newest.items())[-_MOST_KNOWN:])))


def _parsed(name: str, data: bytes) -> _Commit:
    head, _, message = data.partition(b"\n\n")
    header: dict[bytes, bytes] = {}
    parents: list[str] = []
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"parent":
            parents.append(value.decode("ascii", "replace"))
        elif key:  # a line that goes on begins with a space
            header.setdefault(key, value)
    return _Commit(name, header, tuple(parents), message)


def _person(line: bytes) -> tuple[bytes, bytes, bytes]:
    found = _PERSON.fullmatch(line)
    if found is None:
        raise GitFailed("a commit has an author or a committer that cannot be read")
    return found[1], found[2], b"@" + found[3] + b" " + found[4]


def _email(identity: str) -> str:
    found = _IDENTITY.match(identity)
    return found[1] if found else ""


def _many(count: int) -> str:
    return "1 commit is" if count == 1 else f"{count:,} commits are"
