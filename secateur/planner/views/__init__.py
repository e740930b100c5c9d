"""Views: queries that have a name. A statement that mentions one is planned as if the query stood there."""
