"""The search index of a team, in a PostgreSQL database: the second implementation of `Engine`."""
