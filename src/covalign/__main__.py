"""``python -m covalign`` is the command ``covalign``."""

from __future__ import annotations

import sys

from covalign._core.interrupts import Interrupted, interruptible


def main() -> None:
    """Run a command. Control-C ends it with a line and the exit code 130 also while it is being imported."""
    try:
        with interruptible():
            from covalign.cli import app

            app()
    except (KeyboardInterrupt, Interrupted):
        sys.stderr.write("covalign: interrupted; nothing was written\n")
        if "--json" in sys.argv:
            sys.stdout.write('{"error": "interrupted; nothing was written", "exit_code": 130}\n')
        sys.exit(130)


if __name__ == "__main__":
    main()
