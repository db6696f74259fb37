"""The kernel side: everything that touches BPF, ELF files and /proc.

``parts`` makes its parts and joins them, ``source`` polls them for the daemon's loop. ``presence`` says whether probes
are there at all, ``spending`` what they have cost, ``doctor`` what this host allows, ``process_checks`` what a process
does.

- Which processes? ``process/``
- Which functions are hot? ``sampling/``. What are they called, and who calls them? ``symbols/``
- What is timed, when, and what was counted? ``timing/``
- What must not be probed? ``safety/``
- What does a hit cost, and what does it add to a duration? ``calibration/``
- The kernel's programs: ``bpf/`` (C), ``compiler/`` (a process), ``kernel/`` (programs, maps, links),
  ``holder/`` (a process)
- What depends on the processor? ``arch/``
- Foreign files: ``elf/``; only its child process parses them
"""
