"""x86-64.

- ``machine``: the values that the daemon and the children need
- ``calibration_program``: machine code whose probes are timed
- ``bpf/``: registers and stack frames in the BPF programs
- ``instruction_set``: how code is taken apart, for the parser child alone; by ``disassembly``, ``branches``,
  ``stack_loads``, ``unwinder_jumps``, ``linked_text`` (of digests), ``uprobe_handling`` (what the kernel makes of an
  instruction)
"""
