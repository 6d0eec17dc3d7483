"""``python -m covalign`` is the command ``covalign``."""

from covalign.cli import main

if __name__ == "__main__":
    main()
