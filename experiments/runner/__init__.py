"""Runs of experiments: when they may start, who runs them, one at a time."""
