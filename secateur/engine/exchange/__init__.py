"""Rows between processors: inbox and outbox, edges, and the exchange between members with flow control."""
