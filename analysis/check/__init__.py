"""Formulas checked against recorded data.

- Where do formulas come from? ``formulas``
- What are they evaluated on? ``lifetime_data``, ``document_data``; what names and conditions mean is in ``subjects``
- What is the result as JSON? ``document``
"""
