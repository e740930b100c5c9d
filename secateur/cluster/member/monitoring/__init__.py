"""The monitoring of a member: the statement log, slow statements, counters, and wrong estimates."""
