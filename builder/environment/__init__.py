"""Build environments: pinned wheels become a virtual environment, with a Python of this machine."""
