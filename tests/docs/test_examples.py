"""Every Python example of the README and the manual runs, against a scripted provider."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = [
    pytest.param(code, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, code in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S), 1
    )
]
VERDICT = '{"ok": true, "reason": "it is there"}'


@pytest.mark.parametrize("code", EXAMPLES)
def test_an_example_of_the_manual_runs_as_it_stands(code, tmp_path):
    here = tmp_path / "here"
    (here / "my-project").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (here / "my-project" / "README.md").write_text("three little words\n")
    with FakeModels() as fake:
        fake.script({"text": VERDICT})
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path / "home"),
            "ANTHROPIC_API_KEY": "test-key",
            "ANTHROPIC_BASE_URL": fake.anthropic_url,
        }
        ran = subprocess.run(
            [sys.executable, "-c", code],
            cwd=here, env=env, capture_output=True, text=True, timeout=HANG_S, check=False,
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_manual_has_examples():
    assert len(EXAMPLES) >= 5
