"""Documents as text for people."""
