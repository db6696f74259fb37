"""Models of several stores as one, and how far they agree."""
