"""A new torch: what its published wheels say becomes a proposal of data to review."""
