"""What is inside a wheel, and how it came to be: a bill of materials and a statement, both reproducible."""

from builder.provenance.sbom import sbom, sbom_name
from builder.provenance.statement import Origin, statement

__all__ = ["Origin", "sbom", "sbom_name", "statement"]
