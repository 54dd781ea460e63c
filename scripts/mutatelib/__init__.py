"""Changes of single places of the code, and whether the tests notice them."""
