"""`python -m devlint`: the same as the `devlint` command."""

import sys

from devlint.cli import main

if __name__ == "__main__":
    sys.exit(main())
