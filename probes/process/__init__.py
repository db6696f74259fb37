"""Processes: which are watched, what state they are in, what ours cost."""
