"""From a `setup.py` of torch's `cpp_extension` to a `build.toml`: record what it compiles, write it down, compare."""
