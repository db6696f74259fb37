"""Distributions and estimates in plain numpy; scipy is their oracle in tests."""
