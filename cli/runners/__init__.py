"""What a command does; imported when it runs."""
