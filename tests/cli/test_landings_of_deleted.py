"""What landed from a session outlives the session."""

import json


def test_what_landed_from_a_session_that_is_deleted_by_now_is_taken_back_and_that_is_said(desk):
    """The files came back, and the answer was that there is no such session."""
    desk.edit({"name": "write_file", "input": {"path": "a.txt", "content": "new\n"}})
    before = (desk.project / "a.txt").read_bytes()
    desk.ok("change it", "-q")
    desk.ok("land", "--yes")
    (session,) = json.loads(desk.ok("sessions", "--json"))
    desk.ok("delete", session["id"], "--yes")
    (landed,) = json.loads(desk.ok("landings", "--json"))
    undone = json.loads(desk.ok("undo", "--yes", "--json"))
    assert (undone["undoes"], undone["state"]) == (landed["id"], "done")
    assert (desk.project / "a.txt").read_bytes() == before != b"new\n"
