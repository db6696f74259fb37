"""Timed functions: their probes are attached and detached, and what the kernel counts becomes observations.

``factory`` assembles it over the maps of loaded programs; the source polls ``registry``.

- Which functions? ``registry`` (all of them), ``unmapped`` (asked for, not mapped yet), ``function/`` (one of them and
  its parts)
- When are its probes attached? ``phases/``; ``isolation``: which functions have no probes inside their calls?
- Where? ``attacher``, ``process_choice``, ``link_table``, ``address_spaces``, ``placement``
- How are returns timed without a change to the stack? ``return_probes``, ``text_pages``
- What was counted, and what did it cost? ``windows``, ``off_cpu``, ``inside`` (both over ``slot_rows``), ``reservoir``;
  ``activity``; ``hit_watch``: was anything?
"""
