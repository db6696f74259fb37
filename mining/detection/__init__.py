"""On-line detection of changes inside a build.

- What is watched, and what is an alarm? ``alarm``
- Which numbers does an observation give? ``values``
- How is a change told from wandering, disturbed windows? ``streams``, ``disturbances``, ``changes``, ``innovations``
- What is the state of a function, and what does it say? ``state``, ``detector``
- How much evidence is enough? ``threshold``
- Is it the host? ``common_mode``
- What would be detected within a minute? ``power``
"""
