"""Violations of one function: from windows to alarms, from alarms to violations, and their causes."""
