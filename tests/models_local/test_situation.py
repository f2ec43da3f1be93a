"""What a request says about the work so far."""

from support.local_talk import asked, called

from bowerbird.core.messages import Message, ToolResultBlock, ToolUseBlock, assistant_text, user_text
from bowerbird.core.requests import ModelRequest
from bowerbird.models.local.situation import Known, read_situation, without_files

FILES = "Files:\na.py\nlib/b.py"


def test_files_come_from_the_block_that_names_them():
    request = ModelRequest((user_text("hi"),), system=("Be kind.", FILES))
    assert read_situation(request).files == ("a.py", "lib/b.py")
    assert without_files(request.system) == ("Be kind.",)


def test_more_files_than_listed_are_noticed():
    many = "Files:\n" + "\n".join(f"f{n}.py" for n in range(201))
    assert read_situation(asked(system=(many,))).more_files
    assert read_situation(asked(system=("Files:\na.py\n… and 40 more",))).more_files
    assert not read_situation(asked(system=(FILES,))).more_files


def test_a_file_is_known_as_it_was_read_with_later_edits():
    situation = read_situation(
        asked(
            *called("read_file", {"path": "a.py", "offset": 1}, "X = 1\nY = 2\n"),
            *called("edit_file", {"path": "a.py", "old": "Y = 2", "new": "Y = 3\nZ = 4"}, "1 replacement"),
        )
    )
    assert situation.known["a.py"] == Known(("X = 1", "Y = 3", "Z = 4"))


def test_a_failed_edit_changes_nothing():
    situation = read_situation(
        asked(
            *called("read_file", {"path": "a.py"}, "X = 1\n"),
            *called("edit_file", {"path": "a.py", "old": "X = 1", "new": "X = 2"}, "no", is_error=True),
        )
    )
    assert situation.known["a.py"].text == "X = 1"
    assert situation.last is not None and situation.last.failed


def test_a_long_file_is_known_part_by_part():
    first = {"content": "1\n2\n", "next_offset": 3, "total_lines": 4}
    rest = {"content": "3\n4\n", "next_offset": None, "total_lines": 4}
    begun = called("read_file", {"path": "a.txt", "offset": 1}, "…", data=first)
    assert read_situation(asked(*begun)).known["a.txt"] == Known(("1", "2"), 3)
    ended = called("read_file", {"path": "a.txt", "offset": 3}, "…", data=rest)
    assert read_situation(asked(*begun, *ended)).known["a.txt"] == Known(("1", "2", "3", "4"))


def test_the_marker_of_a_text_result_tells_where_to_go_on():
    told = called("read_file", {"path": "a.txt", "offset": 1}, "1\n2\n[more: read_file with offset=3]")
    assert read_situation(asked(*told)).known["a.txt"] == Known(("1", "2"), 3)


def test_a_result_that_is_no_longer_sent_is_forgotten():
    told = called("read_file", {"path": "a.py"}, "[Previous: used read_file]")
    assert read_situation(asked(*told)).known == {}


def test_only_calls_of_this_turn_count():
    before = called("search_files", {"pattern": "tax"}, "0 matches")
    request = ModelRequest(
        (user_text("one"), *before, assistant_text("nothing"), user_text("two"), *called("bash", {}, "ok"))
    )
    situation = read_situation(request)
    assert [done.call.name for done in situation.calls] == ["bash"]
    assert situation.task == "two"


def test_paths_in_search_results_become_known_paths():
    found = called("search_files", {"pattern": "x"}, "deep/er/c.py:3: x = 1\n1 match")
    assert "deep/er/c.py" in read_situation(asked(*found)).files


def test_a_call_without_result_is_no_success():
    message = Message("assistant", (ToolUseBlock("c1", "read_file", {"path": "a.py"}),))
    situation = read_situation(ModelRequest((user_text("x"), message)))
    assert situation.known == {} and situation.last is not None and situation.last.result is None


def test_a_result_without_call_is_left_out():
    stray = Message("user", (ToolResultBlock("nobody", "text"),))
    assert read_situation(ModelRequest((user_text("x"), stray))).calls == ()


def test_a_list_of_files_that_comes_twice_counts_once():
    block = "Files:\n" + "\n".join(f"f{n}.py" for n in range(150))
    situation = read_situation(asked(system=(block, block)))
    assert len(situation.files) == 150 and not situation.more_files


def test_a_call_is_a_repeat_when_it_was_just_made_or_failed_or_only_looked_around():
    code, search = {"code": "print(1)"}, {"pattern": "fee"}
    again = read_situation(
        asked(
            *called("run_python_code", code, "no", is_error=True),
            *called("search_files", search, "0 matches"),
            *called("bash", {"command": "ls"}, "a.py"),
            *called("bash", {"command": "pwd"}, "/"),
        )
    )
    assert again.is_repeat("run_python_code", code) and again.is_repeat("search_files", search)
    assert again.is_repeat("bash", {"command": "pwd"}) and not again.is_repeat("bash", {"command": "ls"})
    assert not again.is_repeat("run_python_code", {"code": "print(2)"})


def test_a_search_for_some_words_of_an_earlier_one_is_a_repeat():
    situation = read_situation(asked(*called("search_files", {"pattern": "bulk|discount"}, "a.py:1: BULK")))
    assert situation.is_repeat("search_files", {"pattern": "Discount", "limit": 30})
    assert not situation.is_repeat("search_files", {"pattern": "discount|fee", "limit": 30})
