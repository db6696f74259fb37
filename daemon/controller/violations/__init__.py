"""Violations of one function: from windows to alarms, from alarms to violations, and their causes.

- What is known of one function? ``function_violations``. What is asserted? ``asserted``. Measured how? ``yardstick``
- What does a window say? ``detection``. What changed? ``yardstick_comparison``, ``class_comparison``: a ``change``
- What follows? ``lifecycle``
- What creeps? ``creep``. What does a change cost? ``lost_time``
- Why? ``cause``, from the ``facts`` around it: in which kind of time the difference lies (``time_difference``), what
  speaks for each cause (``evidence``), compared with what is ``usual``. What do all functions share? ``host_detection``
"""
