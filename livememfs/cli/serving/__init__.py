"""The commands that serve clients, and those that say who they are: mcp, web, token."""
