"""Files that commands make are there whole, or not at all: a limit of file sizes stands in for a full disk."""

import os
import resource
import subprocess
from pathlib import Path

import pytest
from support.desk import Desk
from support.patience import HANG_S


def limited(desk: Desk, size: int, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command that may write no file larger than `size` bytes."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    quiet = desk.environment | {"PYTHONDONTWRITEBYTECODE": "1"}  # else modules are cached by half
    process = desk.start(*arguments, preexec_fn=limit, env=quiet)
    out, err = process.communicate(timeout=HANG_S)
    return subprocess.CompletedProcess([], process.returncode, out.decode(), err.decode())


@pytest.mark.parametrize(
    ("arguments", "makes"),
    [(("config", "init", "c.yaml"), "c.yaml"), (("init", "--yes", "new"), "new/config.yaml")],
)
def test_settings_that_could_not_be_written_whole_are_not_there(
    here: Desk, arguments: tuple[str, ...], makes: str
) -> None:
    """The next try left the half alone, as somebody's own."""
    failed = limited(here, 100, *arguments)
    assert failed.returncode == 1 and "Traceback" not in failed.stderr, failed
    assert not (here.project / makes).exists()
    assert not [name for name in os.listdir((here.project / makes).parent) if name.endswith(".tmp")]
    here.ok(*arguments)
    assert (here.project / makes).stat().st_size > 100


def test_a_conversation_that_could_not_be_exported_whole_leaves_no_file(here: Desk, tmp_path: Path) -> None:
    here.fake.script({"text": "word " * 400_000})
    here.ok("run", "hi")
    target = tmp_path / "talk.html"
    failed = limited(here, 1_000_000, "export", "--out", str(target))
    assert failed.returncode != 0 and "cannot be written" in failed.stderr, failed
    assert not target.exists()
    here.ok("export", "--out", str(target))
    assert target.stat().st_size > 1_000_000


def test_a_restore_with_few_descriptors_is_whole_or_nothing_and_names_the_reason(
    here: Desk, tmp_path: Path
) -> None:
    """It called a whole backup damaged, or left half of one that no second restore would go into."""
    here.fake.script(
        {"tools": [{"name": "write_file", "input": {"path": "n.txt", "content": "n"}}]}, {"text": "ok"}
    )
    here.ok("run", "hi")
    here.ok("backup", str(tmp_path / "backup"))
    for most in range(8, 16):
        data = str(tmp_path / f"data{most}")

        def limit(most: int = most) -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

        process = here.start("--data-dir", data, "restore", str(tmp_path / "backup"), preexec_fn=limit)
        told = process.communicate(timeout=HANG_S)[1].decode()
        if process.returncode != 0:
            assert "many open files" in told and "Traceback" not in told, (most, told)
            here.ok("--data-dir", data, "restore", str(tmp_path / "backup"))
        assert "hi" in here.ok("--data-dir", data, "sessions")
