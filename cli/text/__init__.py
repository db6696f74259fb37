"""Documents as text for people, in ASCII; ``cli/base/typography.py`` adds the letters that a terminal has.

- What does a whole specification say? ``specification``; of one function `analysis/wording` writes
- Which functions are there? ``functions``; which is meant? ``function_names``
- What do the durations of a function look like? ``histogram``; what happened inside its calls? ``inside``
- What is wrong? ``violations``; what does a check say? ``check``; a comparison? ``comparison``
"""
