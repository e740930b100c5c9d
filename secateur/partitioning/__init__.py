"""partitioning."""
