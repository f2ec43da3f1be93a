"""CONTRIBUTING's recipe for a WebSocket event, followed in a copy of the source: three files, and every door has it."""

import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.desk import Desk
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.servers import free_port

ROOT = Path(__file__).parent.parent.parent
WISH = "send a new event over the WebSocket"

EVENT = '''
class Weather(Tagged, frozen=True, tag="weather"):
    """The sky over a place has changed."""

    place: str
    sky: str


# ---------------------------------------------------------------- the end
'''

FRAME = '''
class Weather(ServerFrame, frozen=True, tag="weather"):
    """The sky over a place has changed.

    Attributes:
        place: where. sky: what it is like there.
    Example:
        {"type": "weather", "place": "Paris", "sky": "rain", "cursor": 1, "turn_id": "t_01J"}
    """

    line: ClassVar[str] = "the sky over {place}: {sky}"

    place: str
    sky: str


class Retrying('''

TYPES = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("types_script", sys.argv[1])
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)
print(script.frames_text())
"""


def named_files() -> list[str]:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    [row] = re.findall(rf"^\| {WISH}[^|]*\|([^|]*)\|", text, re.MULTILINE)
    return re.findall(r"`(src/[^`]*\.py)`", row)


def edit(file: Path, *changes: tuple[str, str]) -> None:
    text = file.read_text()
    for old, new in changes:
        assert text.count(old) == 1, (
            f"{old!r} is not in {file.name}: tell this test how the change is made now"
        )
        text = text.replace(old, new)
    file.write_text(text)


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A copy of the source with the new event in it."""
    target = tmp_path / "copy"
    shutil.copytree(ROOT / "src", target / "src", ignore=shutil.ignore_patterns("__pycache__", "ui"))
    files = named_files()
    assert len(files) == 3
    events, frames, place = (target / name for name in files)
    members = "    | SandboxTier\n    | Trace\n)"
    edit(
        events,
        (members, members[:-2] + "\n    | Weather\n)"),
        ("\n# ---------------------------------------------------------------- the end\n", EVENT),
    )
    edit(frames, ("\nclass Retrying(", FRAME))
    call = "    yield call_model(turn, Ask())\n    reply ="
    edit(
        place,
        (call, '    yield Weather("Paris", "rain")\n' + call),
        ("RunEvent, UserStep\n", "RunEvent, UserStep, Weather\n"),
    )
    return target / "src"


@pytest.fixture
def desk(tmp_path: Path, changed: Path) -> Iterator[Desk]:
    (tmp_path / "desk").mkdir()
    with FakeModels() as models, Desk(tmp_path / "desk", models) as desk:
        models.script({"text": "here"}, {"text": "there"})
        desk.environment["PYTHONPATH"] = str(changed)
        yield desk


def said(desk: Desk, *arguments: str) -> str:
    """What the command says beside the answer; a process of its own, because the copy is not this one's source."""
    process = desk.start(*arguments)
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, err
    return err.decode()


def python(desk: Desk, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env=desk.environment,
        text=True,
        capture_output=True,
        check=True,
        timeout=HANG_S,
    )
    return done.stdout


def test_a_new_event_takes_three_files_and_every_door_has_it(desk: Desk) -> None:
    """House R3: terminals here and over a server draw it; manual, page and AsyncAPI are made from it."""
    assert "the sky over Paris: rain" in said(desk, "hi")
    port = free_port()
    process = desk.start("serve", "--port", str(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + HANG_S
    while True:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert process.poll() is None and time.monotonic() < deadline, "the server did not start"
        time.sleep(0.05)
    assert "the sky over Paris: rain" in said(desk, "--server", f"http://127.0.0.1:{port}", "hi")
    process.terminate()
    process.wait(HANG_S)
    manual = python(desk, "-m", "bowerbird.core.wire.reference")
    assert "### `weather`" in manual and "what it is like there." in manual
    types = python(desk, "-c", TYPES, str(ROOT / "scripts" / "build_web_types.py"))
    assert "export interface Weather {" in types and 'weather: "the sky over {place}: {sky}"' in types
