"""What a leaving viewer leaves behind (SV-49). Pure."""

from bowerbird.server.socket.viewers_rule import ViewersRule


def watch(*, kept: bool = False) -> ViewersRule:
    attendance = ViewersRule()
    attendance.submitted("t_1", 0, kept=kept)
    return attendance


def test_the_running_turn_of_a_socket_stops_with_its_last_viewer() -> None:
    attendance = watch()
    assert attendance.marked("t_1", "running", kept=False) is False
    assert attendance.emptied() == "t_1"


def test_it_goes_on_when_somebody_asked_for_it_even_if_they_left() -> None:
    assert watch(kept=True).emptied() is None
    attendance = watch()
    attendance.marked("t_1", "running", kept=False)
    attendance.joined(kept=True)
    assert attendance.emptied() is None


def test_a_turn_that_began_before_its_sender_heard_of_it_is_theirs() -> None:
    for kept, stopped in ((False, "t_1"), (True, None)):
        attendance = ViewersRule()
        attendance.marked("t_1", "running", kept=False)
        attendance.submitted("t_1", 0, kept=kept)
        assert attendance.emptied() == stopped


def test_a_message_that_joins_a_turn_of_others_does_not_make_it_theirs() -> None:
    attendance = ViewersRule()
    attendance.marked("t_rest", "running", kept=False)
    attendance.submitted("t_rest", 0, kept=False, steers=True)
    assert attendance.emptied() is None


def test_a_turn_that_came_another_way_is_not_touched() -> None:
    attendance = ViewersRule()
    attendance.marked("t_rest", "running", kept=False)
    assert attendance.emptied() is None


def test_a_turn_that_had_not_begun_stops_when_it_begins() -> None:
    attendance = watch()
    assert attendance.emptied() is None
    assert attendance.marked("t_1", "running", kept=False) is True


def test_unless_somebody_came_back_first() -> None:
    attendance = watch()
    attendance.emptied()
    attendance.joined(kept=False)
    assert attendance.marked("t_1", "running", kept=False) is False


def test_what_was_queued_behind_it_is_not_given_up() -> None:
    attendance = watch()
    attendance.marked("t_1", "running", kept=False)
    attendance.submitted("t_2", 1, kept=False)
    assert attendance.emptied() == "t_1"
    attendance.marked("t_1", "cancelled", kept=False)
    assert attendance.marked("t_2", "running", kept=False) is False


def test_a_turn_that_waits_is_left_and_the_one_after_the_answer_is_ours() -> None:
    attendance = watch()
    attendance.marked("t_1", "running", kept=False)
    attendance.paused("t_1")
    assert attendance.emptied() is None
    assert not attendance.ours
    attendance.continued()
    attendance.marked("t_2", "running", kept=False)
    assert attendance.emptied() == "t_2"


def test_another_attempt_is_the_same_turn() -> None:
    attendance = watch()
    attendance.marked("t_1", "running", kept=True)
    attendance.marked("t_1", "running", kept=False)
    assert attendance.emptied() is None
