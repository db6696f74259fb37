"""Stochastic performance logic: formulas over functions, behaviours, builds and hosts, and whether they hold."""
