"""Load on the machine: tasks, their worker, their limits."""
