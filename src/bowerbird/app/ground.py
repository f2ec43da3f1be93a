"""What the features of sessions stand on, made once per process.

Here: the record that each of them is given. Not here: which there are (`parts.py`), making it
(`application.py`).
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from bowerbird.app.maker import SettingsTurnMaker
from bowerbird.app.sandboxes import Runtimes, SandboxNews
from bowerbird.config import Loaded
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sessions.branches.branches import Branches
from bowerbird.store.store import Store


class Ground(msgspec.Struct, frozen=True):
    """What the parts of a process stand on.

    Attributes:
        loaded: settings. store, branches, sandboxes, runtimes, maker: of the process. news: of its sandboxes.
        data_dir: where everything is kept. runs: whether this process runs the turns of a session.
    """

    loaded: Loaded
    store: Store
    branches: Branches
    sandboxes: SandboxHost
    runtimes: Runtimes
    maker: SettingsTurnMaker
    news: SandboxNews
    data_dir: Path
    runs: Callable[[str], bool]
