"""The command line: one file per command; the only folder that prints.

- Which commands are there? ``main``, ``commands/``
- What does a command do beyond options and printing? ``runners/``; the rest is in analysis
- How does a result read? ``text/``, ``pictures/``
- Which options, exit codes and outputs do all commands share? ``base/``
"""
