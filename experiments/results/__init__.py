"""Results as documents, in a journal, and as predictions."""
