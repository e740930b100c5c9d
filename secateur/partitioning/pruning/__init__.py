"""Partition pruning: from predicates to value domains, key ranges and the partition tree."""
