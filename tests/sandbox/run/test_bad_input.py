"""The issue's bad input, SB-5, SB-14, SB-15, SB-31: each gets the stated record or error and loses nothing."""

import math

import pytest
from support.abuse import Desk

from bowerbird.core.errors import InvalidArgument
from bowerbird.sandbox.run.command import LONGEST_ARGUMENT

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("timeout", [0, -1, -0.0, math.nan, -math.inf, "60", None, True, 1j])
async def test_a_timeout_that_is_no_time_is_refused(desk: Desk, timeout: object):
    with pytest.raises(InvalidArgument):
        await desk.run("touch ran", timeout=timeout)
    assert await desk.branch.stat("ran") is None
    await desk.assert_usable()


@pytest.mark.parametrize("timeout", [math.inf, 1e300, 3601])
async def test_a_timeout_over_all_limits_is_lowered_and_said(desk: Desk, timeout: float):
    result = await desk.run("true", timeout=timeout)
    assert result.exit_code == 0 and "3600" in (result.note or "")


@pytest.mark.parametrize(
    "command",
    [
        "", " \n\t", [], [""], ["", "x"], "echo a\0b", ["echo", "a\0b"], "echo \ud800", ["echo", b"x"], ["echo", 3],
        "x" * (LONGEST_ARGUMENT + 1), "ü" * LONGEST_ARGUMENT, ["echo", "x" * (1 << 20)],
    ],
    ids=lambda command: repr(command)[:20],
)  # fmt: skip
async def test_a_command_that_is_none_is_refused(desk: Desk, command: str | list[str]):
    with pytest.raises(InvalidArgument):
        await desk.run(command)
    await desk.assert_usable()


async def test_commands_as_long_as_the_kernel_takes_run(desk: Desk):
    """Longer than a packet between the processes, also where JSON makes each character six."""
    for letter in ("x", "ü", "\x01", "\udcff"):
        size = LONGEST_ARGUMENT // len(letter.encode("utf-8", "surrogateescape")) - 20
        result = await desk.run(["python3", "-c", "import sys; print(len(sys.argv[1]))", letter * size])
        assert result.output == f"{size}\n"
    many = await desk.run(
        ["python3", "-c", "import sys; print(len(sys.argv))", *("x" * 1000 for _ in range(800))]
    )
    assert many.output == "801\n"
    too_many = await desk.run(["true", *("x" * 100_000 for _ in range(40))])
    assert too_many.exit_code == 126 and "too long" in too_many.output
    await desk.assert_usable()


@pytest.mark.parametrize(
    "env", [{"A=B": "x"}, {"": "x"}, {"A": "\0"}, {"A\0": "x"}, {"A": 3}, {"A": "\ud800"}]
)
async def test_variables_that_no_environment_holds_are_refused(desk: Desk, env: dict[str, str]):
    with pytest.raises(InvalidArgument):
        await desk.run("true", env=env)
    await desk.assert_usable()


async def test_other_arguments_are_checked_too(desk: Desk):
    for options in ({"max_output_bytes": 0}, {"cwd": "a\0b"}):
        with pytest.raises(InvalidArgument):
            await desk.run("true", **options)
    await desk.assert_usable()


async def test_exit_codes_are_the_specified_ones(desk: Desk):
    """SB-15."""
    cases = {
        "exit 7": 7, "kill -KILL $$": 137, "kill -TERM $$": 143, "nothing-like-this": 127, "./a.txt": 126,
        "kill -SEGV $$": 139,
    }  # fmt: skip
    for line, code in cases.items():
        assert (await desk.run(line)).exit_code == code, line
    missing = await desk.run(["nothing-like-this"])
    assert missing.exit_code == 127 and "nothing-like-this" in missing.output
    refused = await desk.run(["./a.txt"])
    assert refused.exit_code == 126 and "a.txt" in refused.output
    await desk.assert_usable()


async def test_streams_are_kept_apart_when_asked_and_stdin_is_what_was_given(desk: Desk):
    result = await desk.run("cat; echo wrong >&2", stdin=b"typed\xff\n", separate=True)
    assert (result.stdout, result.stderr) == ("typed\ufffd\n", "wrong\n")
    large = await desk.run("wc -c", stdin=b"x" * (3 << 20))
    assert large.output.strip() == str(3 << 20)
    assert (await desk.run("cat; echo end")).output == "end\n"
    await desk.assert_usable()


async def test_invalid_text_in_output_breaks_nothing(desk: Desk):
    """SB-17: also across the place where output is cut."""
    for limit in range(300, 320):
        result = await desk.run(r"printf 'ü\xc3\x00%.0s' $(seq 300)", max_output_bytes=limit)
        assert len(result.output.encode()) <= limit and "\0" not in result.output
    await desk.assert_usable()
