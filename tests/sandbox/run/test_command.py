"""SB-14, SB-15, SB-31: what may be asked, and the code it ends with."""

import math

import pytest

from bowerbird.core.errors import InvalidArgument
from bowerbird.sandbox.run.command import Ending, check_command, check_timeout, exit_code


@pytest.mark.parametrize("value", [0, -1, math.nan, True, "60", None])
def test_a_timeout_that_is_no_positive_number_is_refused(value):
    with pytest.raises(InvalidArgument, match="timeout"):
        check_timeout(value, 3600)


def test_a_timeout_above_the_maximum_is_clamped_and_said():
    assert check_timeout(10, 3600) == (10.0, None)
    seconds, note = check_timeout(math.inf, 3600)
    assert seconds == 3600 and note is not None and "sandbox.max_timeout" in note
    assert check_timeout(7200, 3600, configured_s=7200) == (7200.0, None)


@pytest.mark.parametrize("command", ["", "  \n", [], [""], "a\0b", ["a", "b\0"], "x" * (1 << 20)])
def test_a_command_that_cannot_run_is_refused_by_name(command):
    with pytest.raises(InvalidArgument, match="command"):
        check_command(command)


def test_text_goes_to_the_shell_and_a_list_does_not():
    assert check_command("ls | wc")[1:] == ("-c", "ls | wc")
    assert check_command(["ls", "a b"]) == ("ls", "a b")


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        pytest.param(Ending(code=3), 3, id="its own"),
        pytest.param(Ending(signal=9, stop="timeout"), 124, id="timeout"),
        pytest.param(Ending(code=0, stop="timeout"), 124, id="timeout-though-it-ended-well"),
        pytest.param(Ending(signal=11), 139, id="signal"),
        pytest.param(Ending(signal=9, stop="memory"), 137, id="memory"),
    ],
)
def test_exit_codes_are_those_of_a_shell(ending, code):
    assert exit_code(ending) == code
