"""From predicates to boxes over the key columns: which keys can make one TRUE.

Source: the filter analysis of "SQL Optimization for Partition Pruning" (Hazelcast), the value sets of Kudu's column
predicates.
"""
