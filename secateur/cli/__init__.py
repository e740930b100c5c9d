"""The command ``secateur``: a shell for SQL, and commands that start, fill, look at and end clusters."""
