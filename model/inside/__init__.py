"""What happened inside timed calls: which other timed functions they called, and how long those took.

- What is told of the calls of a window? ``parts``; of several windows? ``sums``
"""
