"""The process that owns every link: its end detaches all probes.

A small process of its own (standard library only, started as ``__main__.py``). It makes the links that the daemon
requests, wakes on the kernel's rate limits, and closes links in several threads (a close blocks its caller 50 ms). It
closes all of them when the daemon dies, or after a second without its heartbeat. The daemon holds no link, so
neither SIGKILL nor SIGSTOP of it can leave a probe behind.
"""
