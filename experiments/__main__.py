"""``python -m specmine.experiments`` answers one request, after it has taken the lowest priority."""

import sys

from specmine.experiments.runner.self_priority import LOWEST, set_self_priority

if __name__ == "__main__":
    set_self_priority(LOWEST)
    from specmine.experiments.runner.server import main

    sys.exit(main())
