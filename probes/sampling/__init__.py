"""Where programs spend their time."""
