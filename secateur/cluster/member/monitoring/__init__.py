"""What a member tells of its work: the statement log, slow statements, counters, and wrong estimates."""
