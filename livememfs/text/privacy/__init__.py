"""Removing what is private from a text: `<private>` blocks, and credentials, known by their form or their name."""
