"""Formulas checked against recorded data.

- Where do formulas come from? ``formulas``
- What are they evaluated on? ``data``
- What is the result as JSON? ``document``
"""
