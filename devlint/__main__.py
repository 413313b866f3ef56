"""`python -m devlint`: the same as the `devlint` command."""

from devlint.safe_path import keep_out

if __name__ == "__main__":
    import sys

    keep_out(sys.argv[1:])  # before anything else is imported

    from devlint.cli import main

    sys.exit(main())
