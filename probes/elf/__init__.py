"""Facts about foreign files, asked of the parser child."""
