"""Decide for each cell what will be made, of what and why; nothing is compiled here."""
