"""Lifetimes with their samples, from stores and from files.

- What is known of a function in one lifetime? ``lifetime``; which of its calls count? ``lifetime_calls``
- Where does it come from? ``from_store``, ``from_csv``
- Which lifetimes does a user mean? ``selection``; which are there though nothing was timed? ``seen``
- Are two builds of one program? ``programs``
"""
