"""Lifetimes with their samples, from stores and from files.

- What is known of a function in one lifetime? ``lifetime``
- Where does it come from? ``from_store``, ``from_csv``
- Which lifetimes does a user mean? ``selection``
"""
