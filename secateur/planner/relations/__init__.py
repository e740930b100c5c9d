"""Relations: a query as a tree of relational operators, for analysis only.

What runs is the user's own text over pruned scans. The tree says which rows of a scan can matter: :mod:`build` makes
it, :mod:`facts` says what holds for the rows of a relation, and :mod:`prunability` carries predicates down to the
scans.
"""
