"""From what an agent does to what is remembered of it: events are captured, and observed when they are due."""
