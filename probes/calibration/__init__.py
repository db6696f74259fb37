"""What one hit costs and adds to durations on this host."""
