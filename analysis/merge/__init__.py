"""Several stores, runs or hosts as one."""
