"""A member: its partitions, statements, writes and their copies, loads, and jobs."""
