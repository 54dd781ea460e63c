"""Support for the agents' own programs: the payloads and answers of their hooks, and installing and uninstalling.

Refuses to import the command line and the servers, which are layers above.
"""
