"""The time of calls: running, waiting for a CPU, blocked; and which part of it the host explains.

- How do the calls of each class spend their time? ``breakdown``
- What on the host causes a wait: timeslices, a limit, ticks? ``host_causes``
- What is asserted of time on CPU alone? ``on_cpu``
"""
