"""Queries on a member: plans, execution modes, queries in steps, reads by key, snapshots, and open results."""
