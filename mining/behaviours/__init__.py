"""Groups of call paths whose calls share a distribution over classes."""
