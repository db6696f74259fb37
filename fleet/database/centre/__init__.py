"""The centre's process.

- Its roles, and when each has its turn: ``serving``, ``turns``.
- Loading and folding: ``loader``. Planning and mining: ``serving``, over ``planning`` and ``analysing``.
- What it says of itself: ``status``, ``metrics_file``.
"""
