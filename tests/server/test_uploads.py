"""Uploads that need a name, and those that are refused (SV-16, D-5)."""

import httpx
from support.servers import TestServer


def test_an_upload_that_programs_obey_needs_its_name(server: TestServer, client: httpx.Client) -> None:
    """Security 21, server 12: `.git/hooks/pre-commit` and a workflow landed with 200."""
    for subdir, name in ((".git/hooks", "pre-commit"), (".github/workflows", "ci.yml"), ("", ".envrc")):
        params = {"subdir": subdir}
        refused = client.post("/api/workspace/upload", params=params, files={"files": (name, b"x")})
        assert (refused.status_code, refused.json()["code"]) == (409, "landing_refused"), refused.text
        assert not (server.workspace / subdir / name).exists()
    named = {"subdir": ".github/workflows", "accept": ".github/workflows/ci.yml"}
    assert (
        client.post("/api/workspace/upload", params=named, files={"files": ("ci.yml", b"x")}).status_code
        == 200
    )
    assert (server.workspace / ".github/workflows/ci.yml").read_bytes() == b"x"


def test_two_files_of_one_name_and_a_place_outside_are_refused(
    server: TestServer, client: httpx.Client
) -> None:
    """Server 12: the first of two was dropped without a word; `/etc` became `etc`."""
    twice = [("files", ("a.txt", b"1")), ("files", ("a.txt", b"2"))]
    assert client.post("/api/workspace/upload", files=twice).status_code == 422
    outside = client.post(
        "/api/workspace/upload", params={"subdir": "/etc"}, files={"files": ("a.txt", b"1")}
    )
    assert outside.status_code == 403
    assert not (server.workspace / "a.txt").exists() and not (server.workspace / "etc").exists()
