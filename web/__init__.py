"""The page: what is wrong, what is normal, what that costs; read from a daemon or a store, never written to it."""
