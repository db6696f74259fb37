"""The centre's process: what it does in turns."""
