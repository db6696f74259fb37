"""The pure decision: what happened in, what to do out."""
