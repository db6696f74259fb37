"""Prometheus metrics of the last snapshot."""
