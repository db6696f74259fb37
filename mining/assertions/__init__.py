"""The smallest set of call edges that distinguishes behaviours, stated as assertions and verified.

- How do call paths, or callees that calls reached, explain the classes of a function? ``explain``; its result is an
  ``explanation``
- Which groups may be stated? ``grouping``
- Which grouping of the paths is stated? ``model_selection``
- Does it explain, or only follow how paths vary? ``significance``, of a ``candidate``
- How long is a statement? ``description_length``
- Which call edges distinguish the groups? ``edge_search``
- What is the shortest formula over these edges? ``assertion``, with ``minimization``
- How is a formula written, read and evaluated? ``expression``
- Does a later observation agree? ``verification`` (one claim), ``checks`` (all that is asserted of a function)
"""
