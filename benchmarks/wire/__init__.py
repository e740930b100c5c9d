"""Suite: the wire."""
