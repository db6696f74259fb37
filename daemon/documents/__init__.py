"""The state of the controller as documents.

- What is known of all functions, and of one? ``specification``, ``function``
- Which observations is it known from? ``data``; which borders, behaviours and paths follow? ``statements``
- How long do calls take, usually and now? ``levels``; does that hold? ``verdicts``
- How was the time of calls spent? ``time_split``; what happened inside them? ``inside``
- Which slowdown would be found, and how soon? ``detectable``
- What stopped being true, and in which words? ``violations``, with ``violation_context`` and ``violation_text``
- What does the daemon do? ``status``
"""
