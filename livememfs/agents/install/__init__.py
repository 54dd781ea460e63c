"""Putting livememfs before an agent, in a project or in all of a user, and taking it out again to the byte.

`table` has the agents, `plan` says what would change, `disk` changes it all or nothing, `record` remembers what was
inserted where. Everything between is text in, text out: files are edited as text and never written anew from what was
parsed, so that comments, order and white space of what is not ours stay. Blocking; any thread.
"""
