"""``python -m specmine.experiments``: answers one request, with little weight before anything large is read in."""

import sys

from specmine.experiments.runner.self_priority import LOWEST, weigh

if __name__ == "__main__":
    weigh(LOWEST)
    from specmine.experiments.runner.server import main

    sys.exit(main())
