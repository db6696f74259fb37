"""Pure mining: arrays in, values out. No clock, disk, kernel or network."""
