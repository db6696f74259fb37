"""Many hosts as one, on PostgreSQL. Nothing of this is imported unless a user names a fleet.

- Histograms and call paths as bytes: ``codec`` and ``blocks``, over ``varints``. Rows added up: ``sums``.
- What a host sends: ``push``, ``records``; what arrives is checked by ``received``: its rows and call paths by
  ``row_tables``, single values by ``checked_values``.
- Which host and which build is slow: ``host_levels``. All of a fleet as one document: ``overview``.
- Windows as rows of five minutes: ``folding``.
- The database, the only users of psycopg: ``database/``. Certificates of hosts: ``certificates``.
- A host's side, the process specmined-forward: ``forwarding/``.
- Planned benchmark runs: ``lab/``.
- The fleet as a store that commands read: ``place``.
"""
