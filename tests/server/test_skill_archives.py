"""Skills installed from zip files: whole or not at all (AS-47), and hidden ones with their reason (AS-45)."""

import io
import signal
import stat
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.patience import HANG_S
from support.servers import TestServer

SKILL = "---\nname: tidy\ndescription: Tidies up.\n---\nDo it.\n"


def archive(files: Mapping[str, str | bytes], *, link: str = "") -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in files.items():
            made.writestr(name, text)
        if link:
            info = zipfile.ZipInfo(link)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            made.writestr(info, "/etc/passwd")
    return data.getvalue()


def upload(client: httpx.Client, data: bytes, *, overwrite: bool = False) -> httpx.Response:
    files = {"files": ("skill.zip", data, "application/zip")}
    return client.post("/api/skills/archive", files=files, params={"overwrite": overwrite})


def test_a_skill_is_installed_whole_and_replaced_whole(server: TestServer, client: httpx.Client) -> None:
    """AS-47."""
    place = server.workspace / "skills" / "tidy"
    made = upload(client, archive({"tidy/SKILL.md": SKILL, "tidy/scripts/a.py": "print(1)\n"}))
    assert made.status_code == 200 and made.json() == {"name": "tidy", "description": "Tidies up."}
    assert (place / "scripts/a.py").read_text() == "print(1)\n"
    assert "tidy" in [row["name"] for row in client.get("/api/skills").json()]
    again = archive({"SKILL.md": SKILL, "references/b.md": "b"})
    assert upload(client, again).status_code == 409 and (place / "scripts").exists()
    assert upload(client, again, overwrite=True).status_code == 200
    assert not (place / "scripts").exists() and (place / "references/b.md").read_text() == "b"
    assert client.delete("/api/skills/tidy").status_code == 200


BAD = {
    "absolute": archive({"/etc/x": "", "SKILL.md": SKILL}),
    "above": archive({"../x": "", "SKILL.md": SKILL}),
    "above, inside": archive({"tidy/a/../../../x": "", "tidy/SKILL.md": SKILL}),
    "backslash": archive({"a\\b": "", "SKILL.md": SKILL}),
    "link": archive({"SKILL.md": SKILL}, link="scripts"),
    "no SKILL.md": archive({"README.md": "x"}),
    "lower case": archive({"skill.md": SKILL}),
    "twice": archive({"SKILL.md": SKILL, "A": "1", "a": "2"}),
    "file and directory": archive({"SKILL.md": SKILL, "a": "1", "a/b": "2"}),
    "bad name": archive({"SKILL.md": SKILL.replace("tidy", "../x")}),
    "no front matter": archive({"SKILL.md": "just text"}),
    "too many": archive({"SKILL.md": SKILL, **{f"f{n}": "" for n in range(500)}}),
    "bomb": archive({"SKILL.md": SKILL, "zeros": bytes(21 << 20)}),
    "no archive": b"PK\x03\x04 nothing",
    "cut off": archive({"SKILL.md": SKILL})[:-30],
    "empty": archive({}),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_what_cannot_be_is_named_and_installs_nothing(
    server: TestServer, client: httpx.Client, data: bytes
) -> None:
    """AS-47."""
    before = sorted(p for p in server.workspace.rglob("*") if ".upload" not in p.name)
    answer = upload(client, data)
    assert answer.status_code == 422 and answer.json()["detail"], answer.text
    assert sorted(server.workspace.rglob("*")) == before
    large = upload(client, bytes((5 << 20) + 1))
    assert large.status_code in (413, 422)


def test_a_size_that_lies_is_not_believed(client: httpx.Client) -> None:
    """AS-47: the header says ten bytes, twenty-one megabytes come out."""
    data = bytearray(archive({"zeros": bytes(21 << 20), "SKILL.md": SKILL}))
    size = (21 << 20).to_bytes(4, "little")
    while (at := data.find(size)) >= 0:
        data[at : at + 4] = (10).to_bytes(4, "little")
    assert upload(client, bytes(data)).status_code == 422


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 400), byte=st.integers(0, 255))
def test_no_broken_archive_breaks_the_server(client: httpx.Client, at: int, byte: int) -> None:
    """AS-47: any byte of an archive may be another one."""
    data = bytearray(archive({"SKILL.md": SKILL, "scripts/run.sh": "echo hi\n" * 20}))
    data[at % len(data)] = byte
    assert upload(client, bytes(data), overwrite=True).status_code in (200, 422)


def test_a_hidden_skill_says_why(server: TestServer, client: httpx.Client) -> None:
    """AS-45: `?all=true`; a skill whose bridge or variable is missing is not offered."""
    needs = "---\nname: music\ndescription: Plays.\nrequires_bridge: music\nrequires_env: NO_SUCH\n---\nx\n"
    assert upload(client, archive({"SKILL.md": needs})).status_code == 200
    assert "music" not in [row["name"] for row in client.get("/api/skills").json()]
    rows = {row["name"]: row["hidden"] for row in client.get("/api/skills", params={"all": True}).json()}
    assert "NO_SUCH is not set" in rows["music"] and rows["code-review"] is None
    assert client.delete("/api/skills/music").status_code == 200


REPLACING = """
import os, signal, shutil, sys
from pathlib import Path
from bowerbird.server.conversations.skill_archives import install_archive
fatal, seen = int(sys.argv[3]), 0
def counted(real):
    def call(*arguments, **options):
        global seen
        seen += 1
        if seen == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)
    return call
Path.rename, shutil.rmtree = counted(Path.rename), counted(shutil.rmtree)
install_archive(Path(sys.argv[1]), Path(sys.argv[2]), overwrite=True)
"""


def test_a_skill_that_is_replaced_is_there_wherever_the_server_is_killed(tmp_path: Path) -> None:
    """AS-47: the earlier one, or the new one."""
    root, file = tmp_path / "skills", tmp_path / "skill.zip"
    (root / "tidy").mkdir(parents=True)
    (root / "tidy/SKILL.md").write_text(SKILL)
    file.write_bytes(archive({"SKILL.md": SKILL}))
    for fatal in range(1, 9):
        command = [sys.executable, "-c", REPLACING, str(root), str(file), str(fatal)]
        code = subprocess.run(command, check=False, timeout=HANG_S).returncode
        assert (root / "tidy/SKILL.md").read_text() == SKILL
        if code == 0:
            return
        assert code == -signal.SIGKILL
    pytest.fail("no process came to its end")
