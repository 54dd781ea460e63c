"""Digest: notes become memories."""
