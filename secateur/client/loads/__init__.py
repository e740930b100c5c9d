"""Bulk loads from the client: rows go straight to the owners of their partitions."""
