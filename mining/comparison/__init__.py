"""Functions compared between two sides, part by part.

- Which calls are compared with each other? ``function_parts``
- What follows for the function? ``function_comparison``
- Did both sides take turns in time? ``interleaving``
- How many builds, lifetimes and calls does a comparison need? ``plan``
- How often would unchanged lifetimes be called a change? ``self_test``

The rule for one part, and the statistics below it, are in ``mining/regression``.
"""
