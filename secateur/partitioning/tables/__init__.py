"""Tables as values: definition, indexes, statistics, and rows in the schema of a table."""
