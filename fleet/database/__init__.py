"""The database of a fleet: the only folder outside the store with SQL, and the only one that imports psycopg.

- Connections and their errors: ``connecting``. Tables, roles, rights: ``migrations/``, applied by ``schema``.
- Hosts come and go: ``hosts``. Retention: ``levels``.
- Pushes become rows: ``loading`` takes them, ``storing`` and ``copying`` write them with the numbers of ``numbering``.
- Rows become hours: ``hours``. Medians of hosts: ``host_levels``.
- Who observes what: ``planning``. What many hosts say together: ``analysing``. Both for people: ``sharing``.
- What a host may ask and send: ``pushing``. A file as pushes: ``importing``. The process of the centre: ``centre``.
- Benchmark runs: ``benchmarks``.
- The fleet as a store: ``reading``. Rows for other tools: ``exporting``.
"""
