"""The provenance of a wheel: a bill of its materials and a statement of its build, both reproducible."""

from builder.wheel.provenance.sbom import sbom, sbom_name, with_files
from builder.wheel.provenance.statement import Origin, statement

__all__ = ["Origin", "sbom", "sbom_name", "statement", "with_files"]
