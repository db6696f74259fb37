"""What the loop's steps write to the store, and what a restarted daemon reads from it."""
