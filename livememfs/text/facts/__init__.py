"""The facts that a text states: numbers, dates, versions, names, paths; and whether a line states one nobody said."""
