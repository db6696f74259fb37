"""What is done with recorded data, for the command line, the page and the fleet alike. No terminal, no daemon.

- Which files of other tools can be read? ``importers/``; ``mine_recording`` mines them
- Which lifetimes does a store or a CSV hold? ``lifetimes/``
- Has a function changed between two builds, and where? ``compare/``
- Do formulas hold? ``check/``
- How do several stores become one? ``merge/``
- What does the report page show? ``report/``
- What is in a specification? ``documents``
- In which words do people read of functions and violations? ``wording/``
"""
