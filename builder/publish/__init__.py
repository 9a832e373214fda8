"""Publish: a site to a directory or a bucket, a hub layout to the hub. What is there never changes."""
