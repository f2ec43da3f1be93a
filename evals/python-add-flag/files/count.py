"""Count what is in a file."""

import argparse
import sys


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    options = parser.parse_args()
    try:
        content = open(options.file, "rb").read()
    except OSError as error:
        print(f"count: {error.strerror}: {options.file}", file=sys.stderr)
        return 1
    print(content.count(b"\n"), len(content.split()), len(content), options.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
