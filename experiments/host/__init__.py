"""Facts and counters of the host."""
