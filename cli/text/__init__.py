"""Documents as text for people, in ASCII; ``cli/base/typography.py`` adds the letters that a terminal has.

- Where does a function stand, in a word? ``states``; why? ``reasons``
- How long do calls take? ``levels``; what is asserted of one function? ``assertions``; of all? ``specification``
- Which functions are there? ``functions``; which is meant? ``function_names``
- What is wrong? ``violations``; what does a check say? ``check``; a comparison? ``comparison``
"""
