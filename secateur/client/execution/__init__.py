"""Statements from the client: which member is asked, retries, and what a run cost."""
