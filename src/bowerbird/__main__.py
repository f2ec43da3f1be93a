"""`python -m bowerbird`: the command, where its script is not on the PATH."""

import sys

from bowerbird.cli.start import main

if __name__ == "__main__":
    sys.exit(main())
