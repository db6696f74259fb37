"""The values and words that all parts share; it imports nothing else of specmine.

- What is recorded? ``observation`` (a window of one function), made of ``histogram`` (over ``buckets``), ``call_path``
  and ``split``; ``pooling`` makes one of several
- What passes between the kernel side and the daemon? ``batch``
- Which function is it, and which does a user mean? ``function``, ``globs``
- What has a program of its host? ``host/``
- What can go wrong? ``errors``
- How is it written? ``text`` (for people), ``units`` (in configurations), ``json_codec``
- What time is it? ``clock``
"""
