"""Installing livememfs for an agent, in a project or for all of a user, and uninstalling it to the byte.

`table` lists the agents, `plan` computes the changes, `disk` makes all or none of them, `record` stores what was
inserted. All other modules take and return text: files are edited as text and never rewritten from parsed values, so
that the comments, order and white space of others stay. Blocking; any thread.
"""
