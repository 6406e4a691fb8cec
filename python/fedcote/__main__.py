"""The ``fedcote`` command: ``fedcote …`` or ``python -m fedcote …``."""

import sys

from . import _fedcote


def main() -> int:
    """Executes the command line of this process; returns the exit status."""
    return _fedcote.main(["fedcote", *sys.argv[1:]], [sys.executable, "-m", "fedcote"])


if __name__ == "__main__":
    sys.exit(main())
