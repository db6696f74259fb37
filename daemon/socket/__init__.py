"""The daemon's socket.

- Who is there, and what came from him: ``listener``, ``peer``, ``client_state``. In which order: ``server``.
- What is answered: ``answers``, ``handlers``, ``request_fields``, ``violation_requests``, ``budget_leases``.
- What that took: ``answered_time``.
- The other end: ``client``.
"""
