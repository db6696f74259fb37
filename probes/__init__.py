"""The kernel side: everything that touches BPF, ELF and /proc.

``source.py`` puts it together; ``batch.py`` holds the values that pass between it and the daemon. The rest by question:

- Which processes? ``programs``, ``processes``, ``tracepoints``, ``placing``, ``bystanders``, ``conditions``
- Which functions? ``finding``, ``hints``, ``modules``, ``naming``, ``paths``, ``digests``
- May it be probed? ``gate``, ``safety``, ``textcheck``, ``doctor``; may its returns? ``following``, ``contexts``
- Probes on and off, and what was counted: ``watching/``, ``links``, ``holding/`` (a process)
- The kernel's programs: ``bpf/``, ``compiling/`` (a process), ``loading``, ``kernel``, ``layout``
- What that cost: ``calibration``, ``recalibration``, ``coldness``, ``owncost``
- Foreign files: ``reader``, ``reading/`` (a process), and what passes between them: ``answers``, ``facts``
- Recordings: ``recording``, ``encoding``
"""
