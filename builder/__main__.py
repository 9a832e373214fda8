"""`python -m builder`."""

from builder.cli import main

if __name__ == "__main__":  # a helper process of this one imports this module, too
    main()
