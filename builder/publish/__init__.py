"""Publish a site to a directory or a bucket, or a hub layout to the hub. Published files never change."""
