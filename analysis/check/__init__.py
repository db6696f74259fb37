"""Data against which formulas are evaluated."""
