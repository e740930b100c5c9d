"""The lowest room: types, partition schemes, the partition function and owners. It holds pure values and does no I/O.

Import from its modules directly: each holds one idea, and an import line should show which.
"""
