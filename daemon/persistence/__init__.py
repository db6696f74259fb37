"""What the loop's steps leave in the store."""
