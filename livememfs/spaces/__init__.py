"""Spaces as a whole: making, describing and removing them, their lease, backups, exports, tokens and limits."""
