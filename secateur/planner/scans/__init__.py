"""What is known about each scan: the conjuncts that restrict it, its partition tree, its key ranges, and what it is
co-located with.
"""
