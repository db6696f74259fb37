"""The kernel side: everything that touches BPF, ELF and /proc.

``source.py`` puts it together; ``batch.py`` holds the values that pass between it and the daemon. The rest by question:

- Which processes? ``programs``, ``processes``, ``choosing``, ``bystanders``, ``conditions``
- Which functions? ``finding``, ``hints``, ``modules``, ``naming``, ``paths``
- May it be probed, and how? ``gate``, ``safety``, ``textcheck``, ``returns``, ``following``, ``contexts``,
  ``doctor``
- Probes on and off: ``watching``, ``watched``, ``linking``, ``links``, ``holding/`` (a process), ``pages``
- The kernel's programs: ``bpf/``, ``compiling/`` (a process), ``loading``, ``kernel``, ``layout``
- What was counted: ``windows``, ``absences``, ``singles``, ``isolation``, ``buckets``
- What that cost: ``calibration``, ``recalibration``, ``coldness``, ``owncost``
- Foreign files: ``reader``, ``reading/`` (a process), and what passes between them: ``answers``, ``facts``
"""
