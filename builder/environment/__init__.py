"""Turn pinned wheels into virtual environments, with a Python of this machine."""
