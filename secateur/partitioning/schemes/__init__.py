"""Partition schemes: hash components and range partitions, and which partition a row belongs to."""
