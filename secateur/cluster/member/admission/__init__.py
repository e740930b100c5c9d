"""Admission control of a member: turns for statements, and memory for rows."""
