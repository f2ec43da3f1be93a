"""What of the MCP server is a function of values: limits of runs, addresses, paths, exposure."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.core.errors import InvalidArgument
from bowerbird.protocols.mcp_server.branch_tools import virtual
from bowerbird.protocols.mcp_server.framing import fault_of
from bowerbird.protocols.mcp_server.ground import McpCaller, McpRules
from bowerbird.protocols.mcp_server.limits import MOST_CALLERS, WINDOW_S, CallLimits
from bowerbird.protocols.mcp_server.resources import address_of, session_uri
from bowerbird.protocols.mcp_server.results import LONGEST_DETAILS, details
from bowerbird.providers.contract.errors import AgentRateLimited


@given(st.lists(st.floats(0, 30), max_size=80))
def test_never_more_than_so_many_in_a_minute(gaps: list[float]) -> None:
    """PT-6: against the plain count of what was let through."""
    now, begun = [0.0], list[float]()
    limits = CallLimits(lambda: now[0])
    for gap in gaps:
        now[0] += gap
        recent = [at for at in begun if at > now[0] - WINDOW_S]
        try:
            with limits.run("a", per_minute=5, running=2):
                begun.append(now[0])
        except AgentRateLimited as refused:
            assert len(recent) == 5
            assert refused.retry_after_s is not None
            assert 1 <= refused.retry_after_s <= WINDOW_S
        else:
            assert len(recent) < 5


def test_runs_are_counted_by_caller_and_given_back() -> None:
    """PT-6: a failed run gives its place back."""
    limits = CallLimits(lambda: 0.0)
    with limits.run("a", per_minute=9, running=1):
        with limits.run("b", per_minute=9, running=1):
            pass
        with pytest.raises(AgentRateLimited), limits.run("a", per_minute=9, running=1):
            pass
    with pytest.raises(ZeroDivisionError), limits.run("a", per_minute=9, running=1):
        raise ZeroDivisionError
    with limits.run("a", per_minute=9, running=1):
        pass


def test_ten_thousand_callers_take_no_more_room() -> None:
    """Law 8: whoever runs something is not forgotten."""
    limits = CallLimits(lambda: 0.0)
    with limits.run("busy", per_minute=9, running=1):
        for number in range(MOST_CALLERS + 5):
            with limits.run(str(number), per_minute=9, running=1):
                pass
        with pytest.raises(AgentRateLimited), limits.run("busy", per_minute=9, running=1):
            pass


@given(st.text(max_size=60))
def test_every_address_is_read_or_none_of_ours(text: str) -> None:
    """PT-13: no text raises."""
    address_of(text)
    address_of("bowerbird://sessions/" + text)


@given(st.text(min_size=1, max_size=40))
def test_a_session_is_found_under_its_own_address(thread_id: str) -> None:
    """PT-13."""
    if thread_id.isprintable():
        found = address_of(session_uri(thread_id))
        assert found is not None
        assert (found.thread_id, found.path) == (thread_id, None)


@pytest.mark.parametrize("path", ["../x", "/a/../../x", "a\0b"])
def test_a_path_that_leads_outside_is_refused(path: str) -> None:
    """PT-12."""
    with pytest.raises(InvalidArgument):
        virtual(path)


def test_details_are_one_short_line_without_paths() -> None:
    """PT-2."""
    assert details("no\n  file /srv/data/x.db", lambda text: text) == "no file x.db"
    assert len(details("x" * 100_000, lambda text: text)) == LONGEST_DETAILS


def test_roles_and_exposure() -> None:
    """PT-12."""
    assert not McpCaller("a", "viewer").may("user")
    assert McpCaller("", "admin").owner is None
    assert McpRules(("branch_*",)).exposes("branch_diff")
    assert not McpRules(("branch_*",)).exposes("session_send")


NO_ID: list[Any] = [None, 1.5, True, {"a": 1}, [1], float("nan")]


@given(
    st.one_of(st.text(max_size=5), st.integers(-(10**30), 10**30), st.sampled_from(NO_ID)),
    st.sampled_from(["ping", None, 5]),
    st.sampled_from([{}, {"a": "\ud83d\ude00"}, [1], "x", None]),
)
def test_what_is_no_message_is_told_apart_from_one(number: Any, method: Any, params: Any) -> None:
    """PT-8, PT-16: a request whose id is none was taken for a notification, which nobody answers."""
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    fault = fault_of(json.dumps(message).encode())
    is_id = isinstance(number, str | int) and not isinstance(number, bool)
    assert (fault is None) == (is_id and method == "ping" and isinstance(params, dict))
    assert fault is None or fault.id == (number if is_id else None)
    assert fault_of(json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": 1}}).encode()) is None
