"""Tools over the changes of a session: looked at, landed, taken back, discarded (PT-12).

Here: their arguments and results. Not here: what landing is (`workspace`), reviewing as such
(`sessions/review.py`).

The caller is usually a model: what lands has to be switched on, is tied to what was looked at, and paths that
a person must accept by name are refused.
"""

import asyncio
import hashlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import InvalidArgument, InvalidWorkspace, NotFound, Stale
from bowerbird.core.threads import to_thread
from bowerbird.protocols.mcp_server import results
from bowerbird.protocols.mcp_server.ground import McpGround
from bowerbird.protocols.mcp_server.owned import owned_branch, owned_session
from bowerbird.protocols.mcp_server.session_tools import DOOR
from bowerbird.protocols.mcp_server.tool import THREAD, Call, McpTool, Result, output, parameters, text
from bowerbird.sessions.wishes import NOTHING_TO_LAND, ToLand

if TYPE_CHECKING:
    from bowerbird.workspace import Branch, Landing

DIFF_CHARS = 50_000
MOST_DIFF_CHARS = 1_000_000
MOST_PATHS = 1_000  # of a summary; how many there are is said
STALE = "the changes are no longer those of this snapshot_id; look at them again with branch_diff"

_SNAPSHOT = text("What branch_diff called the state that was looked at.", most=200, least=1)
_PATHS = {
    "type": "array",
    "items": text("A file or directory, from the workspace's top.", most=4096, least=1),
    "minItems": 1,
    "maxItems": 10_000,
    "description": "Only these; leave it out for all changes.",
}
_ROWS = {"type": "array", "items": {"type": "object"}}


def branch_tools(ground: McpGround) -> tuple[McpTool, ...]:
    """Return the tools over changes."""
    tools = _BranchTools(ground)
    return (
        McpTool(
            name="branch_diff",
            title="Look at changes",
            description=(
                "Return what a session changed on its branch: every path, with what a person should know "
                "before it lands, and a unified diff (of one path when path is given). Its snapshot_id names "
                "this state for branch_land and branch_discard."
            ),
            parameters=parameters(
                ("thread_id",),
                thread_id=text("Id of a session, also one of execute_agent.", most=200, least=1),
                path=text("A file or directory, from the workspace's top.", most=4096, least=1),
                max_chars={
                    "type": "integer",
                    "minimum": 0,
                    "maximum": MOST_DIFF_CHARS,
                    "default": DIFF_CHARS,
                    "description": "Longest diff; 0 for the summary alone.",
                },
            ),
            output=output(
                snapshot_id={"type": "string"}, summary=_ROWS, flagged=_ROWS, diff={"type": "string"}
            ),
            run=tools.diff,
            needs="viewer",
            read_only=True,
            idempotent=True,
        ),
        McpTool(
            name="branch_land",
            title="Land changes",
            description=(
                "Bring a session's changes into the user's directory, all or nothing. Refused when anything "
                "changed since branch_diff, and for paths that a person must accept by name."
            ),
            parameters=parameters(
                ("thread_id", "snapshot_id"), thread_id=THREAD, snapshot_id=_SNAPSHOT, paths=_PATHS
            ),
            output=output(landing_id={"type": "string"}, landing={"type": "object"}),
            run=tools.land,
            lands=True,
            destructive=True,
        ),
        McpTool(
            name="landing_undo",
            title="Take a landing back",
            description="Take back what branch_land landed. Refused where files were edited since.",
            parameters=parameters(("landing_id",), landing_id=text("Id of a landing.", most=200, least=1)),
            output=output(landing_id={"type": "string"}, landing={"type": "object"}),
            run=tools.undo,
            lands=True,
            destructive=True,
        ),
        McpTool(
            name="branch_discard",
            title="Throw changes away",
            description="Throw all unlanded changes of a session away; people can restore them for 7 days.",
            parameters=parameters(("thread_id", "snapshot_id"), thread_id=THREAD, snapshot_id=_SNAPSHOT),
            output=output(paths={"type": "array", "items": {"type": "string"}}),
            run=tools.discard,
            destructive=True,
        ),
    )


class _BranchTools:
    def __init__(self, ground: McpGround) -> None:
        self._ground = ground
        self._review = ground.sessions.review

    async def diff(self, call: Call) -> Result:
        """Return the summary and the diff."""
        branch = await owned_branch(self._ground, call.caller, str(call.arguments["thread_id"]))
        path, most = call.text("path"), int(call.arguments.get("max_chars", DIFF_CHARS))
        return await to_thread(self._looked_at, branch, None if path is None else [virtual(path)], most)

    def _looked_at(self, branch: "Branch", paths: list[str] | None, most: int) -> Result:
        rows, state = _rows_and_state(branch, paths)
        patch = branch.unified(paths, ignored=False) if most else ""
        patch = self._ground.redact(patch[: most + 1])
        return results.success(
            snapshot_id=_state(branch) if paths else state,
            count=len(rows),
            summary=rows[:MOST_PATHS],
            flagged=[row for row in rows if row.get("grade", "free") != "free"][:MOST_PATHS],
            diff=patch[:most],
            truncated=len(patch) > most,
        )

    async def land(self, call: Call) -> Result:
        """Land what was looked at."""
        row = await owned_session(self._ground, call.caller, str(call.arguments["thread_id"]))
        branch = await owned_branch(self._ground, call.caller, row.thread_id)
        snapshot_id = str(call.arguments["snapshot_id"])
        chosen = call.arguments.get("paths")
        paths = None if chosen is None else [virtual(str(path)) for path in chosen]
        await self._require(branch, snapshot_id)
        # The part that lands is a plan of its own, made of the state that was just compared.
        plan = snapshot_id if paths is None else (await to_thread(branch.plan_landing, paths)).id
        wanted = ToLand(paths=paths, plan=plan, commits="never")
        landing = await asyncio.shield(
            self._review.land(row.thread_id, wanted, actor=call.caller.user_id or DOOR, door=DOOR)
        )
        if not landing.entries:
            return results.failure(NOTHING_TO_LAND)
        return results.success(landing_id=landing.id, landing=_landing(landing))

    async def undo(self, call: Call) -> Result:
        """Take one of the caller's landings back."""
        directory, landing = await self._own_landing(call, str(call.arguments["landing_id"]))
        undone = await asyncio.shield(
            self._review.undo(directory, landing.id, actor=call.caller.user_id or DOOR, door=DOOR)
        )
        return results.success(landing_id=undone.id, landing=_landing(undone))

    async def discard(self, call: Call) -> Result:
        """Throw away what was looked at."""
        row = await owned_session(self._ground, call.caller, str(call.arguments["thread_id"]))
        branch = await owned_branch(self._ground, call.caller, row.thread_id)
        await self._require(branch, str(call.arguments["snapshot_id"]))
        gone = await asyncio.shield(self._review.discard(row.thread_id))
        return results.success(paths=list(gone.paths))

    async def _require(self, branch: "Branch", snapshot_id: str) -> None:
        if await to_thread(_state, branch) != snapshot_id:
            raise Stale(STALE)

    async def _own_landing(self, call: Call, landing_id: str) -> "tuple[str, Landing]":
        caller, sessions = call.caller, self._ground.sessions
        used = await sessions.lookup.workspaces(caller.owner)
        for directory in dict.fromkeys((*self._ground.places.directories(), *used)):
            try:
                found = await self._review.landings(directory)
            except InvalidWorkspace:
                continue  # it is gone: nothing of it can be undone
            landing = next((one for one in found if one.id == landing_id), None)
            if landing is None:
                continue
            owners = await sessions.lookup.owners_of([landing.branch])
            _, owner = owners.get(landing.branch, ("", None))
            if landing.branch in owners and owner == caller.owner:
                return directory, landing
        raise NotFound("there is no such landing", landing_id)


def _state(branch: "Branch") -> str:
    """Return the name of what a branch changes now, and of what its directory holds there."""
    return _rows_and_state(branch, None)[1]


def _rows_and_state(branch: "Branch", paths: list[str] | None) -> tuple[list[dict[str, Any]], str]:
    try:
        plan = branch.plan_landing(paths).record()
    except InvalidWorkspace:  # a branch of nothing has nowhere to land
        diff = branch.diff(paths, ignored=False).record()
        deleted = [{"path": path, "op": "delete"} for path in diff["deleted"]]
        found = hashlib.sha256(branch.unified(ignored=False).encode("utf-8", "surrogateescape"))
        return [*(_row(entry) for entry in diff["written"]), *deleted], found.hexdigest()
    return [_row(entry) for entry in plan["entries"]], str(plan["plan"])


def virtual(path: str) -> str:
    """Return a path as clients write it, with a leading slash or without, as one of a branch.

    Raises:
        InvalidArgument: it leads outside.

    Example:
        >>> virtual("src/a.py"), virtual("/src/a.py")
        ('/src/a.py', '/src/a.py')
    """
    parts = PurePosixPath(path.lstrip("/")).parts
    if "\0" in path or ".." in parts:
        raise InvalidArgument("the path leads outside the workspace")
    return "/" + "/".join(parts)


def _row(entry: dict[str, Any]) -> dict[str, Any]:
    names = ("path", "op", "drift", "grade", "flags", "reasons", "tainted")
    return {name: entry[name] for name in names if name in entry}


def _landing(landing: "Landing") -> dict[str, Any]:
    return {name: value for name, value in landing.record().items() if name != "workspace"}
