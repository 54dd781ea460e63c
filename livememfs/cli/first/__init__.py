"""The first day: `livememfs init`, its questions, and the configuration file that it writes."""
