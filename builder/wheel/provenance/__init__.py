"""What is inside a wheel, and how it came to be: a bill of materials and a statement, both reproducible."""

from builder.wheel.provenance.sbom import sbom, sbom_name, with_files
from builder.wheel.provenance.statement import Origin, statement

__all__ = ["Origin", "sbom", "sbom_name", "statement", "with_files"]
