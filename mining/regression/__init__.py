"""Has it changed, and is it the code: lifetimes as the units, everything inside one is not independent."""
