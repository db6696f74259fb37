"""What each page says: documents in, values for a template out. Pure."""
