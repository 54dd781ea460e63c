"""What other programs remembered becomes records of a space."""
