"""Where one class of durations ends and the next begins, and whether that stays so."""
