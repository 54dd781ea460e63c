"""Pictures of the live page, for its documentation."""
