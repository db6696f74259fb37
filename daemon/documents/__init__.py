"""The state of the controller as documents: specification, status."""
