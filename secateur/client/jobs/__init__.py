"""Jobs from the client: submission, status, results, and the resolved plan as text or picture."""
