"""The functions under watch: their probes go on and off, and what the kernel counts becomes observations.

``assembling`` puts it together over the maps of loaded programs; ``source.py`` beside this folder polls ``table``.

- Who is watched? ``table`` (all of them), ``watched`` (one of them)
- When are its probes on, and where? ``switching``, ``choosing``, ``linking``; ``buckets`` end that before it is dear
- How are returns timed without touching the stack? ``returns``, ``pages``
- What was counted? ``windows``, ``absences``, ``singles``; ``isolation`` from the probes within its calls
"""
