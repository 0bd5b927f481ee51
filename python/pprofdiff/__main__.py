"""`python -m pprofdiff`: the command."""

from ._cli import main

if __name__ == "__main__":
    raise SystemExit(main())
