"""Borders between classes of durations, and whether they are stable.

- Where are the borders of one histogram? ``detection``, by the ``valleys`` of its density
- What is not a class? Multiples of a clock's step: ``clock_resolution``; rounded values: ``heaping``; differences
  below the resolution: ``smoothing``
- Which borders are stable, and how many observations agree? ``stability``; all in one: ``inference``
- Which borders recur over several executions? ``recurrence``
"""
