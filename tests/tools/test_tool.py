"""What a tool is and how one call runs: TO-1, TO-3 … TO-10, TO-49, TO-50."""

import asyncio
import dataclasses
import time
from typing import Any

import jsonschema_rs
import pytest

from bowerbird.core.errors import (
    InvalidArgument,
    NotFound,
    StoreError,
    ToolDefinitionError,
    ToolError,
    ToolNameCollision,
)
from bowerbird.tools import Tool, ToolContext, ToolResult, Toolset, tool
from bowerbird.tools.limits import cut_middle
from bowerbird.tools.names import BUILTIN_ALIASES, BUILTIN_NAMES, SAFE_TOOLS, builtin_owner, mcp_name

NOTHING = ToolContext()


async def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: First.
        b: Second.
    """
    return a + b


def returning(value: object) -> Tool:
    async def give() -> object:
        """Give it."""
        return value

    return Tool(give)


async def test_a_function_becomes_a_tool_in_three_ways() -> None:
    """TO-1."""

    @tool
    async def bare(a: int) -> int:
        """Bare.

        Args:
            a: A.
        """
        return a

    @tool(effect="read", timeout_s=3)
    async def given(a: int) -> int:
        """Given.

        Args:
            a: A.
        """
        return a

    (plain,) = Toolset([add])
    assert [t.name for t in (bare, given, plain)] == ["bare", "given", "add"]
    assert [t.effect for t in (bare, given, plain)] == ["outside", "read", "outside"]
    assert (given.timeout_s, plain.timeout_s) == (3, 120)
    assert (await plain.call({"a": 1}, NOTHING)).data == {"result": 3}


def sync_fn(a: int) -> int:
    """Return it.

    Args:
        a: A.
    """
    time.sleep(0)
    return a


async def test_a_sync_function_is_refused_with_the_remedy_and_runs_through_from_sync() -> None:
    """TO-1."""
    with pytest.raises(TypeError, match=r"async def.*Tool\.from_sync"):
        Tool(sync_fn)
    made = Tool.from_sync(sync_fn, effect="read")
    assert (made.name, made.effect) == ("sync_fn", "read")
    assert (await made.call({"a": 3}, NOTHING)).content == '{"result":3}'


@pytest.mark.parametrize("name", ["_x", "1a", "a b", "ä", "", "a" * 65])
def test_a_bad_name_is_refused_at_construction_and_named(name: str) -> None:
    """TO-4, acceptance 11."""
    with pytest.raises(ToolDefinitionError) as refused:
        Tool(name=name, description="d", input_schema={"type": "object"}, handler=handler)
    assert repr(name) in str(refused.value)


def test_a_parameter_without_docstring_line_is_refused_by_name() -> None:
    """Acceptance 11."""

    async def half(a: int, lonely: int) -> int:
        """Half.

        Args:
            a: A.
        """
        return a

    with pytest.raises(ToolDefinitionError, match="half: parameter 'lonely'"):
        Tool(half)


def test_a_name_or_alias_of_another_tool_is_a_collision_naming_both() -> None:
    """TO-4, acceptance 11."""

    async def grep(text: str) -> str:
        """Mine.

        Args:
            text: T.
        """
        return text

    files = Toolset.builtin("search_files")
    with pytest.raises(ToolNameCollision, match=r"'grep' and tool 'search_files' \(its alias 'grep'\)"):
        files.with_(grep)
    assert issubclass(ToolNameCollision, ValueError)
    assert builtin_owner("grep") == "search_files"
    assert builtin_owner("execute") == "bash"
    assert builtin_owner("mine") is None


async def handler(args: dict[str, Any], **context: Any) -> dict[str, Any]:
    return {"got": args, "session": context["session"], "keys": sorted(context)}


async def test_a_handler_gets_arguments_and_context() -> None:
    """TO-3."""
    made = Tool(
        name="mine", description="Mine.", input_schema={"type": "object"}, handler=handler,
        effect="session", timeout_s=5, needs_approval=True, aliases=("my",),
    )  # fmt: skip
    result = await made.call({"x": 1}, ToolContext(session="s_1"))
    assert result.data is not None
    assert result.data["got"] == {"x": 1}
    assert result.data["session"] == "s_1"
    assert {"branch", "session", "cancel", "progress", "secret"} <= set(result.data["keys"])
    assert (made.needs_approval, made.ledger_effect) == (True, "store")


@pytest.mark.parametrize(
    ("schema", "told"),
    [(None, "input_schema is missing"), ({"type": "array"}, "'type': 'object'"),
     ({"type": "object", "properties": {"a": {"type": "nonsense"}}}, "not a JSON Schema")],
)  # fmt: skip
def test_a_handler_needs_a_real_schema(schema: Any, told: str) -> None:
    with pytest.raises(ToolDefinitionError, match=told):
        Tool(name="mine", description="Mine.", input_schema=schema, handler=handler)


async def test_a_tool_context_parameter_is_injected_and_not_offered() -> None:
    """TO-2."""

    async def where(context: ToolContext, prefix: str = ">") -> str:
        """Say which session this is.

        Args:
            prefix: Before it.
        """
        return prefix + context.session

    made = Tool(where)
    assert list(made.spec.input_schema["properties"]) == ["prefix"]
    result = await made.call({}, ToolContext(session="s_9"))
    assert result.content == ">s_9"


@dataclasses.dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "content", "data", "is_error"),
    [
        ("text", "text", None, False),
        ({"a": 1, "b": "ü"}, '{"a":1,"b":"ü"}', {"a": 1, "b": "ü"}, False),
        ({"error": "no"}, '{"error":"no"}', {"error": "no"}, True),
        ({"error": None}, '{"error":null}', {"error": None}, False),
        ([1, 2], '{"result":[1,2]}', {"result": [1, 2]}, False),
        (7, '{"result":7}', {"result": 7}, False),
        (None, '{"result":null}', {"result": None}, False),
        (Point(1), '{"x":1}', {"x": 1}, False),
        (ToolResult("c", {"d": 1}, is_error=True), "c", {"d": 1}, True),
    ],
)
async def test_what_a_function_returns_becomes_a_result(
    value: object, content: str, data: Any, is_error: bool
) -> None:
    """TO-5."""
    result = await returning(value).call({}, NOTHING)
    assert (result.content, result.data, result.is_error) == (content, data, is_error)


async def test_a_value_without_json_form_is_the_tools_error() -> None:
    with pytest.raises(TypeError):
        await returning(object()).call({}, NOTHING)


def raising(error: Exception) -> Tool:
    async def fail() -> None:
        """Fail."""
        raise error

    return Tool(fail)


@pytest.mark.parametrize(
    "error", [ToolError("no luck"), NotFound("a is gone", "/a"), InvalidArgument("bad n")]
)
async def test_refusals_become_error_results(error: Exception) -> None:
    result = await raising(error).call({}, NOTHING)
    assert (result.content, result.data, result.is_error) == (str(error), {"error": str(error)}, True)


@pytest.mark.parametrize("error", [KeyError("k"), StoreError("disk"), TimeoutError("theirs")])
async def test_other_exceptions_reach_the_loop(error: Exception) -> None:
    """A lost lease must not be mistaken for a tool's own failure."""
    with pytest.raises(type(error)):
        await raising(error).call({}, NOTHING)


async def test_a_tool_that_takes_too_long_is_stopped() -> None:
    """TO-8."""
    ended = asyncio.Event()

    async def slow() -> None:
        """Wait."""
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    result = await Tool(slow, timeout_s=0.02).call({}, NOTHING)
    assert result.is_error
    assert "slow did not finish within 0.02 s" in result.text
    assert ended.is_set()


async def test_wrong_argument_values_are_told_to_the_model() -> None:
    result = await Tool(add).call({"a": "x"}, NOTHING)
    assert result.is_error
    assert "a: Expected `int`" in result.text


async def test_long_content_is_cut_and_the_whole_kept_readable() -> None:
    """TO-8."""
    kept: dict[str, str] = {}

    async def spill(name: str, text: str) -> str:
        kept[name] = text
        return f"/.transcripts/{name}.txt"

    whole = "".join(f"line {n}\n" for n in range(20_000))
    result = await returning(whole).call({}, ToolContext(call="call_1", spill=spill))
    assert result.truncated
    assert len(result.text) <= 50_000
    assert "/.transcripts/call_1.txt" in result.text
    assert kept == {"call_1": whole}
    assert result.text.startswith("line 0\n")
    assert result.text.endswith("line 19999\n")


def test_the_cut_keeps_whole_lines_and_the_promised_size() -> None:
    """AG-51: head 70 %, tail 30 %."""
    text = "".join(f"{n:09d}\n" for n in range(10_000))
    cut = cut_middle(text, 5_000)
    assert len(cut) <= 5_000
    head, marker, tail = cut.partition("[…")
    assert all(len(line) == 9 for line in head.splitlines())
    assert all(len(line) == 9 for line in tail.splitlines()[1:])
    assert 2 < len(head) / len(tail) < 2.8
    assert "100,000 characters left out" in marker + tail


@pytest.mark.parametrize("limit", [0, 1, 50, 199, 200, 300, 1000])
def test_the_cut_keeps_small_limits_and_lines_without_end(limit: int) -> None:
    assert len(cut_middle("x" * 100_000, limit)) <= max(limit, 100)


def test_a_toolset_is_ordered_and_immutable() -> None:
    """TO-6."""
    base = Toolset.builtin("files", "think")
    assert base.names == tuple(t.name for t in base)
    more = base.with_(add)
    assert "add" not in base
    assert more.names == (*base.names, "add")
    assert more.without("add", "grep").names == tuple(n for n in base.names if n != "search_files")
    assert more.only("add", "glob").names == ("list_files", "add")
    with pytest.raises(InvalidArgument, match="no tool is named 'nope'"):
        more.only("nope")
    with pytest.raises(InvalidArgument, match="no group or built-in tool is named 'filez'"):
        Toolset.builtin("filez")


def test_aliases_resolve_to_canonical_calls_and_are_not_offered() -> None:
    """TO-10, acceptance 9."""
    tools = Toolset.builtin()
    offered = {spec.name for spec in tools.specs}
    assert not offered & set(BUILTIN_ALIASES)

    def call(name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        found = tools.resolve(name, arguments)
        assert found is not None
        assert jsonschema_rs.is_valid(found[0].input_schema, found[1]), (name, found[1])
        return found[0].name, found[1]

    assert call("grep", {"pattern": "x"}) == ("search_files", {"pattern": "x"})
    assert call("glob", {"pattern": "*.py"}) == ("list_files", {"pattern": "*.py"})
    assert call("search_code", {"query": "a+b", "path_glob": "*.py"}) == (
        "search_files",
        {"pattern": "a+b", "glob": "*.py", "fixed": True, "case_sensitive": False, "limit": 50},
    )
    assert call("search_code", {"query": "a", "regex": True, "max_results": 900})[1]["limit"] == 200
    assert call("edit_file", {"path": "a", "old_string": "x", "new_string": "y"}) == (
        "edit_file", {"path": "a", "old": "x", "new": "y"},
    )  # fmt: skip
    assert call("edit_file", {"file_path": "a", "old_text": "x", "new_text": "y"}) == (
        "edit_file", {"path": "a", "old": "x", "new": "y"},
    )  # fmt: skip
    name, arguments = call("read_file_range", {"path": "a", "start_line": 3, "end_line": 5})
    assert name == "read_file"
    assert (arguments["offset"], arguments["limit"]) == (3, 3)
    assert call("read_skill", {"name": "x"}) == ("read_skill", {"skill": "x"})
    assert tools.resolve("no_such", {}) is None


def test_a_parameter_given_under_both_names_is_left_to_be_refused() -> None:
    found = Toolset.builtin("edit_file").resolve(
        "edit_file", {"path": "a", "old": "x", "old_string": "z", "new": "y"}
    )
    assert found is not None
    assert found[1]["old_string"] == "z"
    assert not jsonschema_rs.is_valid(found[0].input_schema, found[1])


def test_unknown_tools_are_answered_with_near_names() -> None:
    """AG-48."""
    tools = Toolset.builtin()
    assert tools.nearest("readfile")[0] == "read_file"
    assert tools.nearest("Grep")[0] == "search_files"
    assert len(tools.nearest("zzz")) == 3


def test_effects_and_the_safe_set_are_those_of_the_chapter() -> None:
    """TO-7, TO-11 … TO-40, TO-49."""
    tools = {t.name: t for t in Toolset.builtin()}
    read = """read_file list_files ls search_files show_changes list_symbols find_references think list_skills
              read_skill web_search web_fetch""".split()
    branch = "write_file edit_file delete_file move_file apply_patch run_python_code run_python_file".split()
    plan = "compact enter_plan_mode exit_plan_mode ask_user".split()
    assert {n: t.effect for n, t in tools.items()} == {
        **dict.fromkeys(read, "read"), **dict.fromkeys(branch, "branch"), **dict.fromkeys(plan, "plan"),
    }  # fmt: skip
    assert set(tools) <= BUILTIN_NAMES
    assert set(tools) & SAFE_TOOLS == set(tools) - set(branch) - {"web_search", "web_fetch"}
    assert {t.ledger_effect for t in tools.values()} == {"read", "branch", "store"}


@pytest.mark.parametrize(("server", "name"), [("git", "log"), ("s" * 40, "t" * 64), ("a.b", "c d")])
def test_names_of_mcp_tools_fit_and_stay_apart(server: str, name: str) -> None:
    """TO-4."""
    made = mcp_name(server, name)
    assert made.startswith("mcp__")
    assert len(made) <= 64
    assert made != mcp_name(server, name + "2")
    Tool(name=made, description="d", input_schema={"type": "object"}, handler=handler)
    assert mcp_name("git", "log") == "mcp__git__log"


def test_origin_is_kept_for_configuration() -> None:
    assert Tool(add).origin == f"{__name__}:add"
    assert returning(1).origin is None
