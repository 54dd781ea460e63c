"""The code that records speak of: where it is in a repository, and whether it is still what it was.

It starts git for what only git knows, and no other program.
"""
