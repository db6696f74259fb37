"""The host's side: from its store to the fleet, in a process of its own with neither capabilities nor root.

- From the store to what waits: ``taking``. From there to the fleet: ``contact``. What the fleet says: ``receiving``.
- The command line: ``main``.
"""
