"""Several stores, runs or hosts as one.

- How are specifications merged? ``specifications``, function by function in ``model``
- How do stores get the same classes first? ``reclassify``
- How far do the inputs agree? ``agreement``
"""
