"""Persistence of a member: its log, checkpoints, and recovery."""
