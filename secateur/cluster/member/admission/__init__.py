"""What a member takes on: turns of statements, and memory for rows."""
