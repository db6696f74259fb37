"""What happened inside calls: which callees, waits and own code their time and its spread are made of. Pure.

- How is the time of each class divided over callees and the function itself? ``composition``
- How is the spread of the durations divided? ``spread``
- Which calls reached the same callees? ``call_kinds``
"""
