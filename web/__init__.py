"""The page: what is wrong, what is normal, what that costs; read from a daemon, a store or a fleet, never written."""
