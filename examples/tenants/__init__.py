"""SQL for the customers of a company: 1,000 tenants, JWTs, free statements, a tenant that goes mad."""
