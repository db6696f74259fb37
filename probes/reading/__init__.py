"""Read foreign files: the process that parses what comes from users and containers.

Started by ``reader.py`` beside this folder, as nobody, without capabilities, with limits on memory and time
(``confinement``). ``child`` takes an open file and a question and answers with the values of ``facts.py``; no other
process imports anything from here. What it reads, by question:

- What is it? ``image`` (its headers), ``binaries``, ``stackswitch``, ``landings``
- Which functions? ``symbols``, ``functiontable``, ``tailcalls``; ``machinecode`` tells builds of one apart
- Where do callers stand? ``unwind``: ``callframes`` and ``frameprogram`` (the call frame information)
- Where may a probe go? ``sites``, ``returnsites``; by ``disassembly``, ``instructions``, ``branches``
"""
