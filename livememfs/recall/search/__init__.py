"""Search: a question is read, and the records that answer it are ranked and shown."""
