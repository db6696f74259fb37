"""Own every link: the process whose end takes all probes off.

A small process of its own (standard library only, started as ``__main__.py``). It makes the links that the daemon asks
for, wakes on the kernel's bucket, closes each link in a thread of its own (a close blocks its caller some 50 ms),
and closes all of them when the daemon dies or has not shown itself for a second. The daemon holds no link, so
neither SIGKILL nor SIGSTOP of it can leave a probe behind.
"""
