"""Three vendors' real programs attempt to mend a failing test; the checks decide (PR-39; issue 16, must-show 6).

    python benchmarks/real_tournament.py --data DIR

`DIR` is a data directory in which `scripts/install_agents.py` put agents. The models are scripted: Claude Code
and Gemini CLI are told a wrong repair, Codex CLI the right one. Prints the ranking, then
what was merged and landed; fails where another than Codex wins. Nothing leaves this machine.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from scripted_models import KEY, scripted

from bowerbird.sandbox.host import PROGRAMS

WHO = ("claude_code", "codex_cli", "gemini")
WRONG = "def add(a, b):\n    return a - b\n"
TEST = "import calc\nassert calc.add(2, 3) == 5, calc.add(2, 3)\n"


def _write(text: str) -> str:
    return f"printf 'def add(a, b):\\n    return {text}\\n' > calc.py"


def _environment(home: Path, data: Path, url: str) -> dict[str, str]:
    programs = (data / PROGRAMS).resolve()
    keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), KEY)
    return {
        **keys,
        "HOME": str(home),
        "PATH": f"{programs / 'bin'}:{os.environ['PATH']}",
        "BOWERBIRD_SANDBOX__READ_ONLY": json.dumps([str(programs)]),
        "ANTHROPIC_BASE_URL": url,
        "OPENAI_BASE_URL": f"{url}/v1",
        "GOOGLE_GEMINI_BASE_URL": url,
        "BOWERBIRD_PROVIDERS__CODEX_CLI__MODEL": "gpt-5.3-codex",
        "BOWERBIRD_PROVIDERS__CLAUDE_CODE__MODEL": "claude-sonnet-5",
        "BOWERBIRD_PROVIDERS__GEMINI__MODEL": "gemini-2.5-pro",
        "BOWERBIRD_PROVIDERS__CODEX_CLI__TRANSPORT": "headless",
        "NO_COLOR": "1",
    }


async def _run(words: Sequence[str], where: Path, env: dict[str, str]) -> tuple[int, str, str]:
    command = [str(Path(sys.executable).parent / "bowerbird"), *words]
    child = await asyncio.create_subprocess_exec(
        *command, cwd=where, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await child.communicate()
    return child.returncode or 0, out.decode(), err.decode()


async def held(place: Path, data: Path) -> None:
    """Hold the tournament in a fresh home and project."""
    home, project = place / "home", place / "project"
    for directory in (home, project):
        directory.mkdir()
    (project / "calc.py").write_text(WRONG)
    (project / "check.py").write_text(TEST)
    async with scripted() as model:
        model.commands = {
            "anthropic": _write("a * b"), "google": _write("6"), "responses": _write("a + b"),
        }  # fmt: skip
        env = _environment(home, data, model.url)
        who = [word for name in WHO for word in ("--with", name)]
        started = time.monotonic()
        told = ("make check.py pass", *who, "--check", "python3 check.py", "--merge", "--json")
        code, out, err = await _run(("attempt", *told), project, env)
        if code:
            sys.exit(f"attempt exited with {code}\n{out}{err}")
        found = json.loads(out)
        print(f"{time.monotonic() - started:.1f} s; key in other hands: {sorted(model.keys - {KEY})}")
        for row in found["ranking"]:
            names = ("rank", "agent", "handle", "status", "passed", "failed", "tokens", "seconds", "error")
            print(json.dumps({name: row[name] for name in names}))
        print("winner", found["winner"], "merged", found["merged"]["written"])
        assert found["ranking"][0]["agent"] == "codex_cli", "the checks did not decide"
        assert (project / "calc.py").read_text() == WRONG, "something landed by itself"
        code, _, err = await _run(("land", found["conversation_id"], "--yes"), project, env)
        assert code == 0 and "a + b" in (project / "calc.py").read_text(), err
        print("landed:", (project / "calc.py").read_text().splitlines()[-1].strip())


def main() -> None:
    """Hold it, and leave nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    place = Path(tempfile.mkdtemp(prefix="bowerbird-tournament-"))
    try:
        asyncio.run(held(place, parser.parse_args().data))
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
