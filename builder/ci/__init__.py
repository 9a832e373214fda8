"""Serve CI: the jobs of a matrix, pipelines for a repository, and the table of a build."""
