"""PEP 249: connections, cursors, and results as Python values."""
