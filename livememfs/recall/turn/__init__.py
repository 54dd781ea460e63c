"""A turn: what an agent is told before it answers a message or opens a file."""
