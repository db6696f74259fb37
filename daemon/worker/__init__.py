"""Mining that takes long, in a process of its own."""
