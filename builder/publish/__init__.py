"""Publish: a site to a directory or a bucket, a hub layout to the hub. What was published never changes."""
