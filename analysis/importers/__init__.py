"""Durations that other tools recorded: one reader a format."""
