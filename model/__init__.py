"""What every part speaks: observations, call paths, batches, errors, units. It imports nothing of ours."""
