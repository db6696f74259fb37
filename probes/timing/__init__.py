"""The functions under watch: their probes are attached and detached, and what the kernel counts becomes observations.

``factory`` assembles it over the maps of loaded programs; the source polls ``registry``.

- Who is watched? ``registry`` (all of them), ``timed_function`` (one of them)
- When are its probes attached, and where? ``duty_cycle``, ``process_choice``, ``attachment``, ``address_spaces``;
  ``rate_limit`` ends that before it becomes expensive
- How are returns timed without a change to the stack? ``return_sites``, ``text_pages``
- What was counted? ``windows``, ``off_cpu``, ``reservoir``; ``isolation`` from the probes within its calls
"""
