"""specmine learns performance assertions from running native programs."""

__version__ = "0.1.0"
