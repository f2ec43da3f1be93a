"""What `pip install bowerbird` takes on disk, by package, with the bytecode that pip makes; or what others take.

    python benchmarks/install_size.py [--with pip|no-compile|uv|uvx|pipx] [--extra mcp …] [--source DIRECTORY] [--most 150]

Builds a wheel, installs it with what it needs into a fresh environment (the packages come from the index that
the installer is set up with) and counts the blocks of all files but those of pip. `no-compile` is pip without
bytecode; `uv` and `uvx` make none by themselves, and Python adds that of what is used. uv hard-links its cache,
which is counted once. Exit code 1 when it is more than `--most` MB (of a million bytes).
"""

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("pip", "setuptools", "wheel")
WAYS = ("pip", "no-compile", "uv", "uvx", "pipx")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--with", dest="way", choices=WAYS, default="pip", help="what installs it")
    parser.add_argument("--extra", nargs="*", default=[], help="install these extras as well")
    parser.add_argument("--source", type=Path, default=ROOT, help="of which sources")
    parser.add_argument("--most", type=float, help="fail above so many MB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
        subprocess.run(
            build, cwd=options.source, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        (wheel,) = place.glob("*.whl")
        wanted = f"{wheel}[{','.join(options.extra)}]" if options.extra else str(wheel)
        sizes = sizes_in(installed(options.way, wanted, place))
    total = sum(sizes.values())
    for name, size in sizes.most_common():
        if size >= 250_000:
            print(f"{size / 1e6:8.1f}  {name}")
    print(f"{total / 1e6:8.1f}  MB in all ({total / (1 << 20):.1f} MiB), {len(sizes)} packages")
    return int(options.most is not None and total > options.most * 1e6)


def installed(way: str, wanted: str, place: Path) -> Path:
    """Install `wanted` below `place` and return where its packages lie."""
    if way in ("pip", "no-compile"):
        venv.create(place / "env", with_pip=True)
        pip = [
            str(place / "env/bin/python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        subprocess.run([*pip, *(["--no-compile"] if way == "no-compile" else []), wanted], check=True)
    else:
        here = {
            "UV_CACHE_DIR": "uv-cache", "UV_TOOL_DIR": "tools", "UV_TOOL_BIN_DIR": "bin", "PIPX_HOME": "pipx", "PIPX_BIN_DIR": "bin",
        }  # fmt: skip
        command = {
            "uv": ["uv", "tool", "install", "--quiet", "--python", sys.executable, wanted],
            "uvx": ["uvx", "--quiet", "--python", sys.executable, "--from", wanted, "bowerbird", "--version"],
            "pipx": ["pipx", "install", "--quiet", "--python", sys.executable, wanted],
        }[way]
        directories = {name: str(place / name_of) for name, name_of in here.items()}
        unwritten = {"PYTHONDONTWRITEBYTECODE": "1"} if way == "uvx" else {}
        subprocess.run(command, check=True, env={**os.environ, **directories, **unwritten})
    return next(path.parent for path in sorted(place.rglob("bowerbird-*.dist-info")) if is_environment(path))


def is_environment(path: Path) -> bool:
    """Whether an installed package lies in an environment, not alone in a cache."""
    return (path.parent / "click").is_dir()


def sizes_in(site: Path) -> Counter[str]:
    """The bytes on disk of each package; what belongs to none counts as `(other)`."""
    sizes: Counter[str] = Counter()
    counted: set[Path] = set()
    tools: set[Path] = set()
    for distribution in metadata.distributions(path=[str(site)]):
        for file in distribution.files or []:
            path = Path(os.path.normpath(str(distribution.locate_file(file))))
            if path.is_relative_to(site) and path.is_file() and path not in counted:
                counted.add(path)
                if distribution.name in TOOLS:
                    tools.add(path)
                else:
                    sizes[distribution.name] += path.stat().st_blocks * 512
    for path in site.rglob("*"):
        if path.is_file() and path not in counted and path.relative_to(site).parts[0] not in TOOLS:
            sizes["(other)"] += path.stat().st_blocks * 512
    return sizes


if __name__ == "__main__":
    sys.exit(main())
