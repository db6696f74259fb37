"""What every command shares: options, output, exit codes, sources."""
