"""Finding what was remembered, and never generating any of it."""
