"""Formulas checked against recorded data.

- Where do formulas come from? ``formulas``
- What are they evaluated on? ``lifetime_data``, ``document_data``; what names and conditions mean is in ``subjects``
- How old is the data, and what is too old? ``data_age``
- What is the result as JSON? ``document``
"""
