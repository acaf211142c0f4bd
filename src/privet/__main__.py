"""`python -m privet`: the same as `privet`, also where the program itself is not on the path."""

from __future__ import annotations

import sys

from privet.cli import main

if __name__ == "__main__":
    sys.exit(main())
