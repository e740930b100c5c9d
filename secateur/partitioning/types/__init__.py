"""Column types: values as they are stored, compared, ordered, hashed and converted."""
