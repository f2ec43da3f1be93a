"""One run of a program: place, branch, sandbox, relay, home, program, snapshot, in this order.

Here: that order, and what becomes of it. Not here: each of its steps.
"""

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bowerbird.config.sections.agent import ProviderEntry
from bowerbird.core.threads import to_thread
from bowerbird.core.usage import Usage
from bowerbird.providers.catalogue import CATALOGUE, CatalogueEntry
from bowerbird.providers.choosing import max_cost_of, model_of
from bowerbird.providers.contract.errors import (
    AgentAuthError,
    AgentConfigError,
    AgentError,
    AgentSessionError,
)
from bowerbird.providers.contract.types import AgentEvent, AgentRequest, ChangeSummary
from bowerbird.providers.outcomes import history_text, prompt_text
from bowerbird.providers.programs import changes
from bowerbird.providers.programs.finding import Programs, chosen_transport, find_programs, search_path
from bowerbird.providers.programs.ground import ProgramGround
from bowerbird.providers.programs.launching import base_environment
from bowerbird.providers.programs.leftovers import RUN_VARIABLE
from bowerbird.providers.programs.lending import lent_tools
from bowerbird.providers.programs.outcome import Outcome, failure, shown_text, with_counted
from bowerbird.providers.programs.program import IDLE_S, STDOUT_BYTES, Ended, RunLimits
from bowerbird.providers.programs.relay.relay import Budget, PriceOf, Relay, Upstream
from bowerbird.providers.programs.transports import (
    HANDSHAKE_S,
    NOT_THE_VENDORS,
    PATIENT_S,
    READS_ONLY,
    Attempt,
    Fallback,
    over_acp,
    run_headless,
)
from bowerbird.providers.programs.vendors import Vendor
from bowerbird.sandbox.run.doors import Door

if TYPE_CHECKING:
    from bowerbird.sandbox.branch_sandbox import BranchSandbox
    from bowerbird.workspace import Branch

_SOLD_BY = {"gemini": "google-genai"}  # whose prices hold for a program that shares no provider's key
_AUTHS = ("relay", "home", "none")


@dataclass(slots=True)
class Progress:
    """What is known of a run so far; what an error keeps (PR-12)."""

    emit: Callable[[AgentEvent], None]
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    content: str = ""
    tokens: int | None = None
    cost: float | None = None
    changes: ChangeSummary | None = None
    error: AgentError | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    """What does not change while a program runs."""

    entry: CatalogueEntry
    settings: ProviderEntry
    vendor: Vendor
    ground: ProgramGround
    request: AgentRequest
    progress: Progress
    timeout_s: float
    deadline: float
    found: Programs
    auth: str
    goes_on: bool  # the vendor's own session: it is known, and its home is still there

    @property
    def may_change(self) -> bool:
        """Whether it edits and runs commands as it likes: the branch is the boundary (PR-21)."""
        return not self.request.direct and self.settings.permission_mode not in READS_ONLY


async def run_program(
    entry: CatalogueEntry,
    settings: ProviderEntry,
    vendor: Vendor,
    ground: ProgramGround,
    request: AgentRequest,
    progress: Progress,
    timeout_s: float,
) -> None:
    """Run a request; what came of it is in `progress`.

    Raises:
        BowerbirdError, OSError: what went wrong before or beside the program's own run.
    """
    deadline = time.monotonic() + timeout_s
    path = search_path(ground.data_dir)
    found = await to_thread(find_programs, entry, settings, path)
    chosen_transport(entry, settings, found)  # refuses before anything is made
    auth = auth_of(entry, settings, vendor)
    goes_on = _goes_on(entry, vendor, ground, request)
    run = _Run(entry, settings, vendor, ground, request, progress, timeout_s, deadline, found, auth, goes_on)
    await ground.clear_remains()
    async with ground.place(entry.name, request.session_id, deadline):
        branch = await ground.branch_of(request)
        await _on_branch(run, branch)


async def _on_branch(run: _Run, branch: "Branch") -> None:
    metadata = run.progress.metadata
    sandbox = await run.ground.sandbox(branch, run.entry.name, needs_way_out=run.auth != "none")
    metadata |= {"branch_id": branch.id, "tier": sandbox.tier}
    start = await to_thread(changes.before, branch)
    logins = tuple(Path.home() / name for name in run.vendor.login_files) if run.auth == "home" else ()
    session = run.request.session_id
    try:
        async with run.ground.home(branch, run.entry.name, session, logins) as lent:
            metadata["run"] = lent.run
            await _in_home(run, branch, sandbox, f"{sandbox.home}/{lent.place.name}", lent.run)
    finally:
        # Shielded: what a cancelled run changed is a snapshot too.
        snapshot = asyncio.ensure_future(to_thread(changes.after, branch, start, run.request.trace_id))
        metadata["snapshot_id"], summary = await asyncio.shield(snapshot)
        run.progress.changes = None if run.vendor.remote else summary
    for path in (*summary.written, *summary.deleted):
        run.progress.emit(AgentEvent("change", path))


async def _in_home(run: _Run, branch: "Branch", sandbox: "BranchSandbox", home: str, name: str) -> None:
    async with AsyncExitStack() as stack:
        relay = _relay(run) if run.auth == "relay" else None
        ports = stack.enter_context(run.ground.ports(branch.id, 2))
        doors: list[Door] = []
        if relay is not None:
            stack.push_async_callback(relay.close)
            doors.append(Door(ports[0], relay.serve))
        elif ignored := [name for name, most in _budget(run).items() if most is not None]:
            run.progress.metadata["ignored"] = ignored
        proxy: str | None = None
        if run.auth == "home":
            door, close = _way_out(run, sandbox, ports[0])
            stack.push_async_callback(close)
            doors.append(door)
            proxy = f"http://127.0.0.1:{ports[0]}"
        lent, addresses = await stack.enter_async_context(
            lent_tools(
                run.ground, run.settings, run.entry.name, run.progress.metadata, ports[1],
                tier=sandbox.tier, acp=_over_acp(run), may_change=run.may_change,
            )
        )  # fmt: skip
        doors += lent
        env = _environment(run, sandbox, home, name, proxy)
        for goes_on in (True, False) if run.goes_on else (False,):
            values = _values(run, sandbox, home, relay, ports[0], goes_on=goes_on)
            attempt = Attempt(
                run.entry, run.vendor, sandbox, branch, values, env, _prompt(run, goes_on=goes_on),
                _limits(run), relay, tuple(doors), run.progress.emit, run.may_change, addresses,
            )  # fmt: skip
            outcome, ended = await _attempted(run, attempt)
            _conclude(run, outcome, ended, relay, values)
            if not (goes_on and isinstance(run.progress.error, AgentSessionError) and not outcome.text):
                return


def _prompt(run: _Run, *, goes_on: bool) -> str:
    """Return the prompt, behind what was said before where the vendor's session does not go on (PR-31)."""
    if goes_on or not run.request.history:
        return prompt_text(run.request)
    run.progress.metadata["history"] = "text"
    return history_text(run.request)


def _over_acp(run: _Run) -> bool:
    """Whether ACP is tried first: settings and programs allow it, and it did not fail lately."""
    chosen = chosen_transport(run.entry, run.settings, run.found)
    return chosen == "acp" and run.found.acp is not None and not run.ground.acp_failed(run.entry.name)


async def _attempted(run: _Run, attempt: Attempt) -> tuple[Outcome, Ended]:
    """Run over the transport that settings and programs allow; a handshake that fails falls back once."""
    if _over_acp(run):
        assert run.found.acp is not None, "asked before"
        try:
            run.progress.metadata["transport"] = "acp"
            alone = run.settings.transport == "acp" or run.found.headless is None
            patience = PATIENT_S if alone else HANDSHAKE_S
            return await over_acp(replace(attempt, handshake_s=patience), run.found.acp)
        except Fallback as failed:
            if attempt.relay is not None and attempt.relay.trouble is not None:
                raise attempt.relay.trouble from failed
            if run.settings.transport == "acp" or run.found.headless is None:
                raise AgentError(f"{run.entry.name} could not be started over ACP: {failed}") from failed
            run.ground.remember_acp_failure(run.entry.name)
            run.progress.metadata["fallback"] = f"ACP failed: {failed}"
    if run.found.headless is None:
        raise AgentError(f"{run.entry.name} can be used over ACP only, which failed lately")
    run.progress.metadata["transport"] = "headless"
    return await run_headless(attempt, run.found.headless)


def _conclude(
    run: _Run, outcome: Outcome, ended: Ended, relay: Relay | None, values: Mapping[str, str | None]
) -> None:
    progress, metadata = run.progress, run.progress.metadata
    trouble = failure(run.entry.name, outcome, ended.code, ended.stderr, ended.stopped, run.vendor.sign_in)
    if relay is not None:
        outcome = with_counted(outcome, relay.input_tokens, relay.output_tokens, relay.cost)
        metadata |= {"model_calls": relay.calls}
        # Some programs end as if all were well, and say in words that the key was rejected.
        if relay.trouble is not None and (trouble is not None or not relay.output_tokens):
            seen = relay.trouble
            seen.__cause__ = trouble
            trouble = seen
    if outcome.denied:
        metadata["denied"] = list(outcome.denied)
    if outcome.notes:
        metadata["notes"] = list(outcome.notes[:20])
    if outcome.link:
        metadata["task_link"] = outcome.link
    own = outcome.session or (
        values.get("session") or values.get("new_session") if run.vendor.names_session else None
    )
    if own:
        metadata["native_session_id"] = own
    usage = {
        "input_tokens": outcome.input_tokens,
        "output_tokens": outcome.output_tokens,
        "cost": outcome.cost,
    }
    if outcome.tokens is not None:
        metadata["usage"] = usage
        progress.emit(AgentEvent("usage", data=usage))
    progress.content, progress.error = shown_text(outcome), trouble
    progress.tokens, progress.cost = outcome.tokens, outcome.cost


def auth_of(entry: CatalogueEntry, settings: ProviderEntry, vendor: Vendor) -> str:
    """Return how an agent signs in: `relay` where there is a key and an address, else what settings say.

    Raises:
        AgentAuthError: its key is not set. AgentConfigError: an unknown `auth`.
    """
    auth = settings.auth or "relay"
    if auth not in _AUTHS:
        raise AgentConfigError(f"providers.{entry.name}.auth is {auth!r}; use {', '.join(_AUTHS)}")
    if auth == "relay" and settings.api_key is None:
        if entry.key_variables:
            names = " or ".join(entry.key_variables)
            raise AgentAuthError(f"{entry.name} has no key: set {names}, or sign in; {vendor.sign_in}")
        return "none"
    if auth == "relay" and settings.base_url is None and entry.base_url is None:
        raise AgentConfigError(
            f"{entry.name} has a key but no address to use it at; set providers.{entry.name}.base_url"
        )
    return auth


def _relay(run: _Run) -> Relay:
    settings, key = run.settings, run.settings.api_key
    assert key is not None
    url = settings.base_url.reveal() if settings.base_url is not None else run.entry.base_url
    assert url is not None
    headers = {name: value.reveal() for name, value in settings.headers.items()}
    upstream = Upstream(url, key.reveal(), run.vendor.key_style, headers)
    most = _budget(run)
    return Relay(upstream, Budget(most["max_tokens"], most["max_cost"]), _price_of(run.entry))


def _budget(run: _Run) -> dict[str, Any]:
    return {"max_tokens": run.request.max_tokens, "max_cost": max_cost_of(run.settings, run.request)}


def _price_of(entry: CatalogueEntry) -> PriceOf:
    from bowerbird.models.prices import price

    sold_by = entry.shares or _SOLD_BY.get(entry.name, entry.name)

    def price_of(model: str, used: Usage) -> float | None:
        return price(used, sold_by, model)

    return price_of


def _way_out(run: _Run, sandbox: "BranchSandbox", port: int) -> tuple[Door, Callable[[], Any]]:
    """Return a door with a proxy to the vendor's own hosts, and to what a person allows on this branch."""
    from bowerbird.sandbox.network.egress_policy import EgressPolicy
    from bowerbird.sandbox.network.egress_proxy import EgressProxy

    reached: list[str] = run.progress.metadata.setdefault("egress", [])

    def note(event: Any) -> None:
        if len(reached) < 100 and event.host not in reached:
            reached.append(event.host)

    hosts = (*run.vendor.hosts, *(entry for entry in sandbox.network.allow if entry != "packages"))
    proxy = EgressProxy(EgressPolicy.parse(hosts), note)
    run.progress.metadata["login_files"] = list(run.vendor.login_files)
    return Door(port, proxy.start), proxy.close


def _values(
    run: _Run, sandbox: "BranchSandbox", home: str, relay: Relay | None, port: int, *, goes_on: bool
) -> dict[str, str | None]:
    origin = f"http://127.0.0.1:{port}" if relay is not None else None
    model, mode = model_of(run.entry, run.settings, run.request), run.settings.permission_mode
    return {
        "model": model,
        "free": "1" if run.may_change and mode is None else None,
        "permission_mode": None if mode in NOT_THE_VENDORS else mode,
        "codex_mode": "agent-full-access" if run.may_change else "read-only",
        "model_line": f"model = {json.dumps(model)}\n" if model else "",  # of TOML
        "session": run.request.native_session_id if goes_on else None,
        "new_session": str(uuid.uuid4()),
        "url": origin and origin + (relay.path if relay is not None else ""),
        "origin": origin,
        "token": relay.token if relay is not None else None,
        "home": home,
        "cwd": sandbox.root,
        "seconds": str(max(1, round(run.deadline - time.monotonic()))),
        "turns": "200",
    }


def _environment(
    run: _Run, sandbox: "BranchSandbox", home: str, name: str, proxy: str | None
) -> dict[str, str]:
    listed = run.entry.name in CATALOGUE  # another's are the vendor's: filled in by `launch`
    own = {key: value.reveal() for key, value in run.settings.env.items()} if listed else {}
    base = base_environment(sandbox.request(["true"]).env, home, own)
    proxies = (
        dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy) if proxy else {}
    )
    return {**base, **proxies, RUN_VARIABLE: name}


def _limits(run: _Run) -> RunLimits:
    return RunLimits(
        deadline=run.deadline,
        timeout_s=run.timeout_s,
        idle_s=run.settings.idle_timeout or IDLE_S,
        stdout_bytes=run.settings.max_output_bytes or STDOUT_BYTES,
    )


def _goes_on(entry: CatalogueEntry, vendor: Vendor, ground: ProgramGround, request: AgentRequest) -> bool:
    return (
        request.native_session_id is not None
        and request.session_id is not None
        and bool(vendor.resume)
        and ground.homes.has(entry.name, request.session_id)
    )
