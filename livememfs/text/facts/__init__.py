"""The facts that a text states: numbers, dates, versions, names, paths; and which facts of a line have no source."""
