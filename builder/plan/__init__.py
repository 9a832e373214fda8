"""Decide for each cell how it is made, and whether it must be; nothing is compiled here."""
