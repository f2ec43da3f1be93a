"""Installs the vendors' agents with the pinned versions, for tests and `benchmarks/real_agents.py`.

    python scripts/install_agents.py DATA_DIR [NAME …]

Each takes 100 to 500 MB and a minute; those that cannot be had are named with the reason, and the rest
goes on.
"""

import sys
from pathlib import Path

from bowerbird.core.errors import BowerbirdError
from bowerbird.providers.programs.installing import install
from bowerbird.providers.programs.packages import PACKAGES


def main(arguments: list[str]) -> int:
    """Install; return how many could not be."""
    data_dir = Path(arguments[0]).expanduser().absolute()
    failed = 0
    for name in arguments[1:] or PACKAGES:
        print(f"== {name}", flush=True)
        try:
            for starter in install(name, data_dir, print):
                print(f"   {starter}")
        except (BowerbirdError, OSError) as error:
            failed += 1
            print(f"   not installed: {error}")
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
