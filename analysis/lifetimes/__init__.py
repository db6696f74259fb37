"""Lifetimes with their samples, from stores and from files."""
