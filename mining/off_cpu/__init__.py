"""What calls do of their time: running, waiting for a CPU, blocked; and what the host explains of it."""
