"""Upkeep: what lies in the bucket and serves nobody any more is found and removed."""
