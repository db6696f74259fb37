"""What a program has of its host.

- What is the host like, as one vector? ``environment``
- What keeps a program from CPU time? ``cpu_shortage``
"""
