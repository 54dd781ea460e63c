"""What livememfs knows of agents' own programs: how their hooks speak, and how it is put into a project and taken out.

Refuses to know the command line and the servers above it.
"""
