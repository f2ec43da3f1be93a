"""What is made is made whole: `make check` finds attributes that are assigned after construction (house R2)."""

import importlib.util
from pathlib import Path
from typing import Any

from support.recipes import ROOT, copy_of_source


def rooms() -> Any:
    spec = importlib.util.spec_from_file_location("check_rooms", ROOT / "scripts" / "check_rooms.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_what_is_assigned_after_construction_is_found(tmp_path: Path) -> None:
    """House R2: whatever an object needs it is given when it is made."""
    planted = [
        ("app/application.py", "    application = Application(", "    service.teams = 1\n", "service.teams"),
        (
            "app/features/memory.py",
            "    rules = MemoryRules(",
            "    maker.remembered = opens\n",
            "maker.remembered",
        ),
        ("cli/admin/lists.py", "\n\ndef ", "\nsessions.parts += ()\n", "sessions.parts"),
        ("server/common/metrics.py", "\n\nclass ", "\nx.sessions.bury = None\n", "x.sessions.bury"),
    ]
    source = copy_of_source(tmp_path / "copy") / "src"
    script = rooms()
    assert script.assigned(script.modules(source)) == []
    for file, place, line, _ in planted:
        path = source / "bowerbird" / file
        before, found, behind = path.read_text().partition(place)
        assert found
        path.write_text(before + line + found + behind)
    findings = script.assigned(script.modules(source))
    assert len(findings) == len(planted)
    for (file, _, _, said), finding in zip(planted, findings, strict=True):
        assert f"{said} is assigned after construction" in finding and file in finding
