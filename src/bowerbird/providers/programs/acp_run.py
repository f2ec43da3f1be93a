"""One prompt over ACP: handshake, session, prompt, stop reason (PR-24, PR-25).

Here: that order over the library's connection, and what of the program's output reaches it. Not here: what
the program may ask of us (`acp_client`), processes (`program`).
"""

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from acp import PROTOCOL_VERSION, RequestError, schema, text_block
from acp.client.connection import ClientSideConnection
from pydantic import ValidationError

from bowerbird.providers.contract.types import AgentEvent
from bowerbird.providers.programs.acp_client import BranchClient
from bowerbird.providers.programs.acp_exchange import Exchange
from bowerbird.providers.programs.launching import acp_launch
from bowerbird.providers.programs.outcome import Outcome, Stopped, tail
from bowerbird.providers.programs.program import Ended, Program
from bowerbird.providers.programs.readers.lines import object_of, sub
from bowerbird.providers.programs.transports import Fallback

if TYPE_CHECKING:
    from bowerbird.providers.programs.transports import Attempt

SESSION_S, _LEAVE_S = 60.0, 0.5
_MOST_STRAY = 1_000
_AUTH_REQUIRED = -32000
CLOSED = "it closed the connection"
_UPDATES = frozenset((
    "user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update",
    "plan",
    "available_commands_update", "current_mode_update", "config_option_update", "session_info_update",
    "usage_update",
))  # fmt: skip


class _SessionGone(ValueError):
    """The program does not know the session that was to go on; what was said goes to a new one as text."""


async def run_acp(attempt: "Attempt", program: tuple[str, ...]) -> tuple[Outcome, Ended]:
    """Run a prompt.

    Raises:
        Fallback: the handshake failed; nothing was asked.
    """
    started = acp_launch(attempt.vendor, program, attempt.values, attempt.env)
    running = await Program.start(
        attempt.sandbox, started, attempt.limits, relay=attempt.relay, doors=attempt.doors, talks=True
    )
    assert running.stdin is not None
    exchange = Exchange(running.stdin)
    pump = asyncio.create_task(_pump(running, exchange), name="acp output")
    client = BranchClient(attempt, allow=attempt.may_change)
    connection: Any = ClientSideConnection(client, exchange)
    asked = False
    outcome, failed, gone = Outcome(), "", False
    session: str | None = None
    try:
        try:
            session = await _begun(attempt, connection)
            asked = True
            client.listening = True
            answer = await connection.prompt(session_id=session, prompt=[text_block(attempt.prompt)])
            outcome = _outcome(answer, client, session)
        except (RequestError, ValidationError, ConnectionError, TimeoutError, ValueError) as error:
            failed, gone = _said(error), isinstance(error, _SessionGone)
            outcome = Outcome(text="".join(client.texts), error=failed, session=session)
    finally:
        await _left(running, connection, client, pump, exchange)
        ended = await running.finish()
    if failed == CLOSED and (last := tail(ended.stderr)):
        failed = f"{CLOSED}: {last}"
        outcome = replace(outcome, error=failed)
    if not asked and ended.stopped is None and not _is_auth(failed) and not gone:
        raise Fallback(failed or "it ended in the handshake")
    return outcome, ended if ended.stopped is not None else replace(ended, code=0)


async def _begun(attempt: "Attempt", connection: Any) -> str:
    """Shake hands and open a session, the earlier one where it can; return its name."""
    async with asyncio.timeout(attempt.handshake_s):
        hello = await connection.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=schema.ClientCapabilities(
                fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
            ),
            client_info=schema.Implementation(name="bowerbird", title="Bowerbird", version="1"),
        )
    if hello.protocol_version != PROTOCOL_VERSION:
        raise ValueError(f"it speaks version {hello.protocol_version} of ACP, not {PROTOCOL_VERSION}")
    methods: list[Any] = list(hello.auth_methods or [])
    offered = {str(method.id) for method in methods}
    async with asyncio.timeout(SESSION_S):
        try:
            return await _session(attempt, connection, hello)
        except RequestError as error:
            method = attempt.vendor.auth_method
            if error.code != _AUTH_REQUIRED or method not in offered or attempt.relay is None:
                raise
            await connection.authenticate(method_id=method)
            return await _session(attempt, connection, hello)


async def _session(attempt: "Attempt", connection: Any, hello: schema.InitializeResponse) -> str:
    cwd, earlier = attempt.sandbox.root, attempt.values.get("session")
    can = hello.agent_capabilities
    lent = _lent(attempt, can)
    if earlier is not None and can is not None:
        resumes = can.session_capabilities is not None and can.session_capabilities.resume is not None
        if resumes or can.load_session:
            goes_on = connection.resume_session if resumes else connection.load_session
            try:
                again = await goes_on(cwd=cwd, session_id=earlier, mcp_servers=lent)
            except RequestError as error:
                if error.code == _AUTH_REQUIRED:
                    raise
                raise _SessionGone(f"session not found: {_said(error)}") from error
            await _choose_mode(attempt, connection, earlier, again)
            return earlier
    made = await connection.new_session(cwd=cwd, mcp_servers=lent)
    await _choose_model(attempt, connection, made)
    await _choose_mode(attempt, connection, str(made.session_id), made)
    return str(made.session_id)


def _lent(attempt: "Attempt", can: schema.AgentCapabilities | None) -> list[schema.HttpMcpServer]:
    """Return the MCP servers that the program is given, where it can reach one over HTTP (PR-25)."""
    says_so = can is not None and can.mcp_capabilities is not None and bool(can.mcp_capabilities.http)
    reaches = says_so or attempt.vendor.takes_http
    if attempt.mcp_servers and not reaches:
        attempt.emit(AgentEvent("tool", "MCP servers are left out: this program reaches none over HTTP"))
    return [
        schema.HttpMcpServer(
            type="http", name=each.name, url=each.url,
            headers=[schema.HttpHeader(name="Authorization", value=f"Bearer {each.token}")],
        )
        for each in (attempt.mcp_servers if reaches else ())
    ]  # fmt: skip


async def _choose_mode(attempt: "Attempt", connection: Any, session: str, opened: Any) -> None:
    """Set the vendor's own permission mode where settings name one that the program offers."""
    wanted, modes = attempt.values.get("permission_mode"), getattr(opened, "modes", None)
    if wanted is not None and modes is not None and wanted in {str(m.id) for m in modes.available_modes}:
        await connection.set_session_mode(session_id=session, mode_id=wanted)


async def _choose_model(attempt: "Attempt", connection: Any, made: schema.NewSessionResponse) -> None:
    """Set the model where the program offers a choice that has it."""
    model = attempt.values.get("model")
    for option in made.config_options or []:
        choices: list[Any] = list(getattr(option, "options", None) or [])
        values = [str(each.value) for each in choices if hasattr(each, "value")]
        wanted = next((v for v in values if v == model or v.endswith(f"/{model}")), None)
        if getattr(option, "category", None) == "model" and wanted is not None:
            await connection.set_config_option(session_id=made.session_id, config_id=option.id, value=wanted)


async def _pump(running: Program, exchange: Exchange) -> None:
    """Give the connection the program's messages; other lines and unknown updates are passed over."""
    stray = 0
    try:
        async for line in running.lines():
            message = _message(line)
            if message is None:
                stray += bool(line.strip())
                if stray > _MOST_STRAY:
                    why = f"it printed more than {_MOST_STRAY:,} lines that are no messages, and was ended"
                    await running.stop(Stopped("output", why))
                    return
            elif _is_known(message):
                await exchange.hear(message)
    finally:
        exchange.leave()


def _message(line: str) -> dict[str, Any] | None:
    found = object_of(line)
    return found if found.get("jsonrpc") == "2.0" else None


def _is_known(message: dict[str, Any]) -> bool:
    if message.get("method") != "session/update":
        return True
    return sub(message, "params", "update").get("sessionUpdate") in _UPDATES


async def _left(
    running: Program, connection: Any, client: BranchClient, pump: "asyncio.Task[None]", exchange: Exchange
) -> None:
    """End the conversation: its standard input ends, half a second later the program."""
    cancelled = asyncio.current_task()
    if cancelled is not None and cancelled.cancelling():
        running.kill()
    await client.close()
    if running.stdin is not None:
        running.stdin.close()
    await asyncio.wait({pump}, timeout=0 if running.stopped else _LEAVE_S)
    running.kill()
    exchange.leave()
    await asyncio.wait({pump})
    await connection.close()


def _outcome(answer: schema.PromptResponse, client: BranchClient, session: str) -> Outcome:
    usage = answer.usage
    reason = answer.stop_reason
    return Outcome(
        text="".join(client.texts).strip(),
        ended=reason == "end_turn",
        error=None if reason == "end_turn" else f"it stopped: {reason}",
        session=session,
        input_tokens=None if usage is None else usage.input_tokens,
        output_tokens=None if usage is None else usage.output_tokens,
        cost=client.cost,
        denied=tuple(client.denied),
    )


def _said(error: Exception) -> str:
    if isinstance(error, RequestError):
        detail = json.dumps(error.data, default=str)[:300] if error.data else ""
        code = "authentication required: " if error.code == _AUTH_REQUIRED else ""
        return f"{code}{error} {detail}".strip()
    if isinstance(error, ConnectionError):
        return CLOSED
    return str(error)[:300] or type(error).__name__


def _is_auth(said: str) -> bool:
    return said.startswith("authentication required")
