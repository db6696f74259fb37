"""The smallest set of call edges that distinguishes behaviours, stated as assertions and verified."""
