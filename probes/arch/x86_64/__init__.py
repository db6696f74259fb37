"""x86-64.

- ``machine``: the values that the daemon and the children need
- ``calibration_program``: machine code whose probes are timed
- ``bpf/``: registers and stack frames in the BPF programs
"""
