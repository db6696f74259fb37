"""Planned benchmark runs on one host or many: ``specmine bench``.

- What is wanted: ``benchmark``. How many runs that needs: ``counts``. In which order: ``run_order``.
- Who runs what, and what came of it: ``ledger``; of one host in its store: ``embedded``. Of a fleet it is in
  ``database``.
- A host's runner: ``runner``. One run: ``measuring``, by ``execution`` of a program. Its result as bytes: ``results``.
- How far it is: ``status``. What came out: ``verdict``.
"""
