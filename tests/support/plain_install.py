"""What `pip install bowerbird` gives, without an index: an environment with those packages of this one that a wheel asks for.

Here: the wheel, the environment. Not here: what tests expect of it.
"""

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


def built_wheel(place: Path) -> Path:
    """Build a wheel of this source into a directory; return it."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = place.glob("*.whl")
    return made


def required(wheel: Path, extras: tuple[str, ...] = ()) -> list[metadata.Distribution]:
    """Return the packages that a wheel needs, and those that they need, as they are installed here."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        wanted = Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist") or []
    found: dict[str, metadata.Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(line, extra) for line in wanted for extra in ("", *extras)]
    while waiting:
        line, extra = waiting.pop()
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        distribution = metadata.distribution(requirement.name)
        found[distribution.name.lower()] = distribution
        for more in ("", *requirement.extras):
            if (distribution.name.lower(), more) not in seen:
                seen.add((distribution.name.lower(), more))
                waiting += [(below, more) for below in distribution.requires or []]
    return list(found.values())


def files_of(distribution: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """Yield what a package installed into site-packages: its name there, where it lies."""
    for file in distribution.files or []:
        place = Path(os.path.normpath(str(distribution.locate_file(file))))
        if ".." not in file.parts and place.is_file():
            yield str(file), place


def plain_environment(wheel: Path, place: Path, extras: tuple[str, ...] = ()) -> Path:
    """Make an environment of the wheel and what it and these extras need; return its Python.

    Files of packages are links to those of this environment, so that it takes a second.
    """
    venv.create(place, with_pip=False, symlinks=True)
    (site,) = place.glob("lib/python*/site-packages")
    for distribution in required(wheel, extras):
        for name, source in files_of(distribution):
            target = site / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                target.symlink_to(source)
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--disable-pip-version-check",
    ]
    subprocess.run([*install, "--prefix", str(place), "--ignore-installed", str(wheel)], check=True)
    return place / "bin" / "python"
