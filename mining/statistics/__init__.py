"""Distributions and estimates in plain numpy; tests compare them with scipy.

- Tail probabilities and quantiles? ``distributions`` (F, chi-squared), ``student_t`` (t, normal)
- What does a test with a given power detect? ``noncentral_t``
- Log gamma, sums of exponentials? ``gamma``
- How well do two groupings agree? ``mutual_information``
- Do two rows of class shares agree? ``class_shares``
- How many independent calls are the calls of a path equivalent to? ``design_effect``
- How often is a function called? ``call_rate``
"""
