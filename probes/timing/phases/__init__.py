"""When the probes of timed functions are on.

- When are they attached and detached? ``duty_cycle``
- Which callees are timed in the very on-phases of a function? ``shared``
"""
