"""The configuration: one frozen tree, one loader, a documented default for every key."""
