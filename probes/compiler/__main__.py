#!/usr/bin/python3
"""Start the child, without leaving a path to our other modules for bcc to find.

usage: __main__.py FD NICENESS        FD: a connected SEQPACKET socket that carries one JSON request, see request.py
"""
import importlib
import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
request = importlib.import_module("compiler.request")
sys.path.pop()

if __name__ == "__main__":
    request.main()
