"""`python -m tigon`, the same as the command `tigon`."""

import sys

from tigon.entry import main

if __name__ == "__main__":
    sys.exit(main())
