"""Pack wheels reproducibly, finish them with name, tag and metadata, and read them back."""
