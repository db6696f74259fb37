"""The daemon's socket: server, client, budget leases."""
