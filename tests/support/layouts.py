"""A developer's home with tools in it, as version managers and installers lay them out; and secrets beside.

Here: making it from small scripts that only say their names. Not here: what tests expect; real tools.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SECRET = "secret-of-the-home"
_TOOLS = {
    "venvs/v/bin/venv-tool": "#!{home}/venvs/v/bin/python\nimport sys; print('venv-tool', sys.prefix)\n",
    "miniconda3/bin/conda-tool": "",
    "miniconda3/envs/e/bin/env-tool": "#!/bin/sh\ncat {home}/miniconda3/envs/e/lib/library\n",
    ".pyenv/shims/shim-tool": "#!/bin/sh\necho the shim\n",
    ".pyenv/versions/3.12.1/bin/shim-tool": "#!/bin/sh\necho shim-tool of 3.12.1\n",
    ".pyenv/versions/3.11.9/bin/shim-tool": "#!/bin/sh\necho shim-tool of 3.11.9\n",
    ".rbenv/shims/ruby-shim": "",
    ".nvm/versions/node/v20.1.0/lib/node_modules/pkg/cli.js": "#!/bin/sh\necho node-tool\n",
    ".volta/volta-shim": "#!/bin/sh\necho volta-tool\n",
    ".local/share/mise/installs/zig/0.1/bin/mise-tool": "",
    ".sdkman/candidates/java/21/bin/java-tool": "#!/bin/sh\ncat {home}/.sdkman/candidates/java/21/lib/modules\n",
    ".rustup/toolchains/stable/bin/rustc": "",
    ".cargo/bin/cargo-tool": "#!/bin/sh\nls $RUSTUP_HOME/toolchains/stable/bin\n",
    "sdk/go/bin/go": "#!/bin/sh\ncat $GOROOT/pkg/tool/compile\n",
    "go/bin/gopath-tool": "",
    ".local/share/pipx/venvs/x/bin/pipx-tool": "#!{home}/.local/share/pipx/venvs/x/bin/python\nprint('pipx-tool')\n",
    "scripts/linked-tool": "",
    "npm/lib/node_modules/lint/lint.js": "#!/bin/sh\necho npm-tool\n",
}
_FILES = {
    "miniconda3/conda-meta/history": "", "miniconda3/envs/e/conda-meta/history": "",
    "miniconda3/envs/e/lib/library": "env-tool\n", ".pyenv/version": "3.11.9\n",
    ".nvm/nvm.sh": "", ".nvm/versions/node/v20.1.0/bin/node": "", ".sdkman/candidates/java/21/bin/java": "",
    ".sdkman/candidates/java/21/lib/modules": "java-tool\n", ".rustup/settings.toml": "",
    ".rustup/toolchains/stable/lib/rustlib/x": "", "sdk/go/pkg/tool/compile": "go\n",
}  # fmt: skip
_LINKS = {
    ".nvm/versions/node/v20.1.0/bin/node-tool": "../lib/node_modules/pkg/cli.js",
    ".volta/bin/volta-tool": "../volta-shim",
    ".sdkman/candidates/java/current": "21",
    ".local/bin/pipx-tool": "../share/pipx/venvs/x/bin/pipx-tool",
    "bin/linked-tool": "../scripts/linked-tool",
    "npm/bin/npm-tool": "../lib/node_modules/lint/lint.js",
}
SECRETS = (
    ".ssh/id_rsa", ".netrc", ".npmrc", ".env", ".cargo/credentials.toml", ".aws/credentials", "miniconda3/.condarc",
    "venvs/v/pip.conf", "venvs/v/.env", ".nvm/.npmrc", ".local/share/keyrings/login", ".local/share/notes",
    "go/src/private/plan", ".pyenv/pip.conf", ".volta/hooks.json", ".rustup/notes", "diary", "scripts/plan", "bin/.netrc",
    "bin/id_rsa", ".local/bin/credentials",
)  # fmt: skip
"""Files with `SECRET` in them, all over that home."""
PATH = (
    "venvs/v/bin", "bin", "miniconda3/envs/e/bin", "miniconda3/bin", ".pyenv/shims", ".rbenv/shims",
    ".nvm/versions/node/v20.1.0/bin", ".volta/bin", ".local/share/mise/installs/zig/0.1/bin",
    ".sdkman/candidates/java/current/bin", ".cargo/bin", "sdk/go/bin", "go/bin", ".local/bin", "npm/bin",
)  # fmt: skip
SAYS = {
    "env-tool": "env-tool", "conda-tool": "conda-tool", "shim-tool": "shim-tool of 3.12.1",
    "node-tool": "node-tool", "volta-tool": "volta-tool", "mise-tool": "mise-tool", "java-tool": "java-tool",
    "cargo-tool": "rustc", "go": "go", "gopath-tool": "gopath-tool", "pipx-tool": "pipx-tool",
    "npm-tool": "npm-tool", "linked-tool": "linked-tool", "user-tool": "user-tool",
}  # fmt: skip
"""What each tool says, outside and inside, in a workspace that asks for Python 3.12."""


def developer_home(home: Path) -> dict[str, str]:
    """Make the home; return the variables of a shell in which all its tools are on PATH."""
    for environment in ("venvs/v", ".local/share/pipx/venvs/x"):
        make_venv(home / environment)
    for name, text in _TOOLS.items():
        _write(home / name, text.format(home=home) or f"#!/bin/sh\necho {Path(name).name}\n", 0o755)
    python = f"python3.{sys.version_info.minor}"
    program = f"#!{sys.base_prefix}/bin/{python}\nimport user_package; print(user_package.NAME)\n"
    _write(home / f".local/lib/{python}/site-packages/user_package.py", "NAME = 'user-tool'\n")
    _write(home / ".local/bin/user-tool", program, 0o755)
    for name, text in _FILES.items():
        _write(home / name, text)
    for name, target in _LINKS.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).symlink_to(target)
    for name in SECRETS:
        _write(home / name, f"{SECRET}\n", 0o600)
    return {
        "HOME": str(home), "PATH": ":".join([*(str(home / each) for each in PATH), os.environ["PATH"]]),
        "VIRTUAL_ENV": str(home / "venvs/v"), "GOROOT": str(home / "sdk/go"),
        "JAVA_HOME": str(home / ".sdkman/candidates/java/current"),
    }  # fmt: skip


def make_venv(place: Path) -> Path:
    """Make a virtual environment with this interpreter, without pip, which takes seconds."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    return place


def install(venv: Path, packages: Mapping[str, Path], scripts: Mapping[str, str]) -> None:
    """Copy packages into an environment, with scripts as installers write them: `{name: body}`."""
    site = next(venv.glob("lib/python3*/site-packages"))
    ignored = shutil.ignore_patterns("__pycache__")
    for name, source in packages.items():
        if source.is_dir():
            shutil.copytree(source, site / name, ignore=ignored)
        else:
            shutil.copy(source, site / name)
    for name, body in scripts.items():
        _write(venv / "bin" / name, f"#!{venv}/bin/python\n{body}\n", 0o755)


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
