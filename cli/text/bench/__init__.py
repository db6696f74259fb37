"""A benchmark as text: its plan in ``planned``, how far it is and what came out in ``progress``."""
