"""Entry point of `python -m pprofdiff`."""

from ._cli import main

if __name__ == "__main__":
    raise SystemExit(main())
