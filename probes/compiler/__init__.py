"""The child that has bcc: compiles the BPF programs, loads them, and hands map and program fds back over a socket.

Started as ``__main__.py`` by the interpreter that has bcc, for a second or two, so that LLVM never lives in the
daemon: Python 3.6 syntax, standard library and bcc only. bcc only compiles; maps, programs and links are made by
plain bpf() calls, since bcc knows neither task storage nor sessions and cannot detach without tracefs.
"""
