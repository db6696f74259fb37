"""Stochastic performance logic: formulas over functions, behaviours, builds and hosts, and whether they hold.

- What is a formula? ``syntax``; a mined one? ``mined``; how is it read? ``grammar``, ``parser``, ``lexicon``
- Which summaries of durations does it know? ``summaries``
- Which formulas is a mined specification? ``from_assertions``
- Does it hold? ``evaluation``; a mined level? ``level_check``; a comparison? ``semantics``
- On what? ``data``
"""
