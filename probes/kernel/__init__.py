"""The kernel's side of the process: programs, maps, links, tracepoints."""
