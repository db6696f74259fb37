"""The daemon: what decides, what is stored and reported; it and ``specmine mine`` run the same loop.

Begin with ``loop``: events come in, ``controller/`` decides, listeners hear of it.

- Who runs the loop? ``main`` and ``service`` (specmined; what works around it: ``services``), ``foreground`` (mine),
  ``replay`` (recordings)
- Where do events come from? ``kernel_source``, ``recording``, ``worker/`` (mining that takes long), ``host/``
- What is reported? ``documents/``, ``metrics/``, ``socket/``, ``regression/`` (changes between builds)
- What is stored? ``persistence/``
- What did the user choose? ``config/``
- The process itself: ``system/``
"""
