"""What depends on the processor: registers, instructions, system call numbers. Nothing else in the product knows them.

- Which machine is this? ``machine``; it raises HostError on one that has no folder here
- What must a machine provide? ``interface``
- The machines: ``x86_64/``

Another machine gets a folder beside it, with the same parts, and its line in ``machine``.
"""
