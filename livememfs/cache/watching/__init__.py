"""How the watcher looks: how often, and how one LIST of a whole space is laid over what is known."""
