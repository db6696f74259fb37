"""Many hosts as one, on PostgreSQL. Nothing of this is imported unless a user names a fleet.

- Histograms and call paths as bytes: ``codec``. What a host sends: ``push``, ``records``.
- Windows as rows of five minutes: ``folding``.
- The database, the only users of psycopg: ``database/``. Certificates of hosts: ``certificates``.
- A host's side, the process specmined-forward: ``forwarding/``.
- The fleet as a store that commands read: ``place``.
"""
