"""A published project, edited and tested on a branch: only the source change lands (issue 3, must show 6).

    python benchmarks/real_project.py [--project itsdangerous==2.2.0] [--network]

Fetches the source distribution and the wheels of its test requirements with the ordinary pip client, outside
of the sandbox. Then the real `bowerbird` command has a scripted model make a virtual environment on the branch,
install the project and its test requirements into it, run the project's own tests, change its source, and run
them again. The workspace is compared, with all times, before the landing; after it one file differs. With
`--network` the sandbox fetches the requirements itself, through the allow-list preset `packages`.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.fake_models import FakeModels
from support.project_work import Work, bash, edit, venv

REQUIREMENTS = ("pytest", "freezegun", "flit_core<4")
SOURCE = "src/itsdangerous/timed.py"
OLD = 'f"Signature age {age} > {max_age} seconds"'
NEW = 'f"Signature age {age} > {max_age} seconds, {age - max_age} too old"'
LOOK = (
    "from itsdangerous import TimestampSigner, SignatureExpired\n"
    "signer = TimestampSigner('k')\n"
    "try: signer.unsign(signer.sign('x'), max_age=-5)\n"
    "except SignatureExpired as error: print('it says:', error)"
)


def fetch(words: list[str]) -> None:
    """Run the ordinary pip client."""
    subprocess.run([shutil.which("pip") or "pip", "download", "-q", *words], check=True)


def prepare(place: Path, project: str, *, wheels: bool) -> None:
    """Make `place/project` from the source distribution, `place/wheels` from what its tests need."""
    name = re.split(r"[=<>~]", project)[0]
    (place / "wheels").mkdir()
    fetch(["--no-deps", "--no-binary", name, "--dest", str(place / "sdist"), project])
    [archive] = (place / "sdist").iterdir()
    with tarfile.open(archive) as files:
        files.extractall(place / "unpacked", filter="data")
    [top] = (place / "unpacked").iterdir()
    top.rename(place / "project")
    if wheels:
        fetch(["--only-binary", ":all:", "--dest", str(place / "wheels"), *REQUIREMENTS])


def passed(text: str) -> str:
    """Return pytest's last line."""
    lines = [line for line in text.splitlines() if " passed" in line or " failed" in line or " error" in line]
    return lines[-1].strip("= ") if lines else f"no result: {text[-300:]}"


def work(place: Path, fake: FakeModels, *, network: bool) -> tuple[list[tuple[str, str]], list[str]]:
    """Do it all; return what to print, and what is wrong."""
    settings: dict[str, Any] = {"network": {"mode": "allowlist", "allow": ["packages"]}} if network else {}
    here = Work(place, fake, place / "wheels", settings)
    make = venv("-e", ".", "pytest", "freezegun")
    if network:
        make = make.replace("--no-index --find-links WHEELS ", "")
    made, first, _edited, second, says = here.do(
        "Say in the error by how much a signature is too old.",
        [
            [bash(make)],
            [bash(".venv/bin/python -m pytest -q -p no:cacheprovider")],
            [edit(SOURCE, OLD, NEW)],
            [bash(".venv/bin/pytest -q -p no:cacheprovider")],
            [bash(f'.venv/bin/python -c "{LOOK}"')],
        ],
    )
    changed = here.changed()
    untouched = here.differences()
    here.land(SOURCE)
    landed = here.differences(times=False)
    rows = [
        ("files of the project", str(len(here.before))),
        (
            "environment and requirements",
            "installed on the branch" if "exit code" not in made else made[-300:],
        ),
        ("its tests before the change", passed(first)),
        ("its tests after the change", passed(second)),
        ("the change at work", says.strip()),
        ("paths written on the branch", f"{len(changed['written'])}, deleted {len(changed['deleted'])}"),
        ("of the workspace changed before the landing", ", ".join(untouched) or "nothing, times included"),
        ("of the workspace changed by the landing", ", ".join(landed)),
        ("time of the turn", f"{here.took_s['run']:.1f} s"),
        ("time of the landing", f"{here.took_s['land']:.1f} s"),
    ]
    wrong = [] if landed == [f"/{SOURCE}"] and not untouched else ["the workspace is not what it should be"]
    wrong += [
        f"tests: {passed(text)}"
        for text in (first, second)
        if not re.fullmatch(r"\d+ passed.*", passed(text))
    ]
    if "too old" not in says:
        wrong.append(f"the change does not work: {says}")
    return rows, wrong


def main() -> int:
    """Run and print; exit code 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--project", default="itsdangerous==2.2.0", help="a requirement of itsdangerous")
    parser.add_argument("--network", action="store_true", help="let the sandbox fetch the test requirements")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bowerbird-project-") as folder, FakeModels() as fake:
        prepare(Path(folder), options.project, wheels=not options.network)
        rows, wrong = work(Path(folder), fake, network=options.network)
    width = max(len(name) for name, _ in rows)
    print("\n".join(f"{name:{width}}  {value}" for name, value in rows))
    print("\n".join(f"WRONG: {text}" for text in wrong) or "all as it should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
