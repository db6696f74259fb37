"""What the fleet asks of this host and tells it: wishes that change what is worth observing, never safety or budget.

- Which functions are this host's now, and which are left to others: ``orders``.
- Statements that many hosts learned, and when this host takes them for its own: ``adoption``.
"""
