"""One timed function and its parts: each owns its fields, a test allows no assignment from elsewhere."""
