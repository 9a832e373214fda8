"""Show what a build did: its steps, its first error, what took the time and the bytes."""
