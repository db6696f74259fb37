"""Modules, functions and call paths by name."""
