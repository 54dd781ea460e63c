"""The commands that put memory before agents: install, uninstall, adopt."""
