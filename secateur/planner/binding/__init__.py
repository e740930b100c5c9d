"""Names and functions of a statement: what they refer to, and what is refused."""
