"""What people read of documents, in the words that the command line and the page share.

- Where does a function stand, in a word? ``states``; why? ``reasons``; and a whole host? ``standing``
- How often is it called? ``call_rate``
- How long do calls take? ``levels``; where did the time go? ``time_split``, ``inside``
- What is asserted? ``assertions``; which slowdown would be found, and how soon? ``detectable``
- In which order are functions listed? ``function_order``; which violations still stand? ``violations``
"""
