"""An agent's own memory becomes a folder of a mount, and is given back.

`place` knows where an agent keeps it, `setting` points the agent elsewhere, `copying` brings files from one folder to
another and loses none, `plan` makes one step of it. Blocking; any thread.
"""
