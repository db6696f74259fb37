"""Durations recorded by other tools: one reader a format, and the mining of what they hold."""

from .analysis import Analysis, analyze
from .formats import FORMATS

__all__ = ["FORMATS", "Analysis", "analyze"]
