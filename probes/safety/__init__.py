"""What must not be probed, and why."""
