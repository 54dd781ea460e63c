"""Notes and memories as acts: adding, merging, forgetting, counting uses, and the tools an agent has for it."""
