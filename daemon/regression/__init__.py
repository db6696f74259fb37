"""Comparisons between builds, watched over lifetimes."""
