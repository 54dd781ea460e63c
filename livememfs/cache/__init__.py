"""The local side of the bucket: what everything above sees of it."""
