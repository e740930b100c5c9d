"""The ground floor: types, schemes, the partition function, and owners. Pure values, no I/O.

Import from the modules: each is one idea, and a reader of an import line should see which.
"""
