"""SQL on the engine: the plan of a SELECT as data, and its stages as vertices."""
