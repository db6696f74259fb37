"""Documents as pictures."""
