"""Two builds compared, function by function."""
