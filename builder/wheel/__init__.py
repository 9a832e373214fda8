"""A wheel: packed reproducibly, finished with its name, tag and metadata, and read back."""
