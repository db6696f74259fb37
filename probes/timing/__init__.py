"""Timed functions: their probes are attached and detached, and what the kernel counts becomes observations.

``factory`` assembles it over the maps of loaded programs; the source polls ``registry``.

- Which functions? ``registry`` (all of them), ``timed_function`` (one of them, composed of the parts below)
- Its parts: ``attachment``, ``schedule``, ``slot``, ``token_bucket``, ``window``, ``return_sites``, ``handler_times``,
  ``open_calls``. Each owns its fields; a test allows no assignment from elsewhere
- When are its probes attached, and where? ``duty_cycle``, ``attacher``, ``process_choice``, ``link_table``,
  ``address_spaces``; ``isolation`` from the probes inside its calls
- How are returns timed without a change to the stack? ``return_probes``, ``text_pages``
- What was counted, and what did it cost? ``windows``, ``off_cpu``, ``reservoir``; ``activity``, ``costs``
"""
