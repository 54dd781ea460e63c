"""Texts as vectors: the built-in model, or an endpoint's. Import from the modules: this file pulls nothing in."""
