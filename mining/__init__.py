"""Pure mining: arrays in, values out. No clock, disk, kernel or network.

- Which classes do durations fall into, and are they stable? ``borders/``
- Which call paths behave alike? ``behaviours/``
- Which call edges distinguish them, and does that still hold? ``assertions/``
- How long do calls take, in which range do they stay, and what is the verdict? ``levels/``
- When did that change? ``detection/``
- How do calls spend their time, and what did the host cause? ``off_cpu/``
- What happened inside the calls: callees, waits, own code? ``inside/``
- Did a function change between two builds? ``comparison/``, by the statistics of ``regression/``
- What do several hosts agree on? ``model_merge/``
- Does a formula of performance logic hold? ``spl/``
- Which tests and estimates do they share? ``statistics/``
- How is it configured, and when is a function observed again? ``settings``, ``utility``
"""
