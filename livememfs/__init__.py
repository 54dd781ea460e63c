"""livememfs: agent memory as a file system, on a bucket."""

__version__ = "0.1.0"
