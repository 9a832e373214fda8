"""Report on a build: its steps, its first error, its slow files, and the sizes of its wheels."""
