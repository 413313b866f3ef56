"""`python -m devlint`: the same as the `devlint` command."""

from devlint.safe_path import keep_out

if __name__ == "__main__":
    keep_out()  # before anything else is imported

    import sys

    from devlint.cli import main

    sys.exit(main())
