"""``python -m specmine.experiments``: answers one request, with little weight before anything large is read in."""

import sys

from .humble import LOWEST, weigh

if __name__ == "__main__":
    weigh(LOWEST)
    from .serving import main

    sys.exit(main())
