"""What the mount shows: one node class per kind of directory or file, in plain values and domain errors."""
