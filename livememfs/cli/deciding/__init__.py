"""Commands by which a person decides on what others propose."""
