"""The journal: what was accepted here and the bucket does not have yet, and the rules for two versions of one name."""
