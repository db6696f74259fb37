"""Read foreign files: the process that parses what comes from users and containers.

``client`` starts it, as nobody, without capabilities, with limits on memory and time (``sandbox``). ``main`` takes an
open file and a question and answers with the values of ``facts``; no other process imports anything from here.

- What is it? ``image`` (its headers), ``binary``, ``stack_switch``, ``unwinder_jumps``
- Which functions? ``symbols``, ``function_table``, ``tail_calls``; ``code_digest`` distinguishes builds of one
- Where do callers stand? ``unwind_rows``: ``eh_frame``, ``cfa_program``, ``leb128`` (the call frame information)
- Where may a probe go? ``probe_sites``, ``return_sites``; by ``branches`` and what the machine knows of its code
"""
