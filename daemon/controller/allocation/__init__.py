"""How the budget is allocated: what there is, what observing would cost, which functions get it."""
