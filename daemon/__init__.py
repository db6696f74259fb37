"""The daemon: what decides, what keeps and tells; it and ``specmine mine`` run the same loop.

Begin with ``loop.py``: events come in, ``controller.py`` decides, listeners hear of it. The rest by question:

- What is decided? ``candidates``, ``flow`` of one function, ``acting``, ``allocation``, ``budget``, ``finding``,
  ``conclusions``, ``inheriting``
- On what? ``events``, ``controllerstate``, ``knowledge``, ``states``, ``where``, ``settings``, ``reasons``
- How is that put together? ``counting``, ``gathering``, ``kept``, ``pooling``
- Who runs it? ``lifecycle`` (specmined), ``session`` (mine), ``worker`` and ``jobs`` (mining that needs scipy),
  ``replay``
- What is told? ``specification``, ``status``, ``answers`` (over ``server``), ``exporter``, ``telling``, ``verdicts``
- What is kept? ``store/``, ``keeping``, ``resume``
- From elsewhere: ``durations/`` (recordings of other tools), ``merging``, ``recounting``, ``experiments``, ``survey``
- Configuration: ``config``, ``configfile``, ``readers``, ``default.yaml``
"""
