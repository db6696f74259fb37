"""Violations of all functions together: restored, acknowledged, and explained by one another."""
