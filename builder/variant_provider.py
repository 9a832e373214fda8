"""Provider of wheel variants (PEP 817): tells an installer which PyTorch is installed, without importing it.

An installer runs it in an environment of its own; nothing but the standard library is imported.
"""

import ast
import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path

NAMESPACE = "torch_kernel"
COMPUTE = "compute"
ABI = "abi"
_OLDEST_STABLE = 9
"""PyTorch 2.9 was the first with a stable ABI for kernels."""


@dataclass(frozen=True)
class Feature:
    """A feature, and its values, the preferred one first."""

    name: str
    values: list[str]
    multi_value: bool = False


class TorchKernelProvider:
    """Provides the features of the installed PyTorch."""

    namespace = NAMESPACE

    @classmethod
    def get_all_configs(cls) -> list[Feature]:
        """Return the features; their values are open, so those of here are examples."""
        return cls.get_supported_configs()

    @classmethod
    def get_supported_configs(cls) -> list[Feature]:
        """Return what the installed PyTorch supports; nothing where there is none."""
        facts = _facts()
        found = re.match(r"([0-9]+)\.([0-9]+)", facts.get("__version__") or "")
        if found is None:
            return []
        major, minor = int(found[1]), int(found[2])
        stable = [f"stable{major}{old}" for old in range(minor, _OLDEST_STABLE - 1, -1)]
        return [
            Feature(name=ABI, values=[f"torch{major}{minor}", *stable, "any"]),
            Feature(name=COMPUTE, values=_compute(facts)),
        ]


def _facts() -> dict[str, str | None]:
    """Return the assignments of `torch/version.py`."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return {}
    try:
        tree = ast.parse(Path(found.origin).with_name("version.py").read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return {}
    facts: dict[str, str | None] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                facts[name] = value if isinstance(value, str) else None
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value)):
                facts[name] = value if isinstance(value, str) else None
            case _:
                pass
    return facts


def _compute(facts: dict[str, str | None]) -> list[str]:
    """Return the compute platform and its backend, such as `cu130` and `cuda`; noarch needs the backend alone."""
    for key, prefix, family in (("cuda", "cu", "cuda"), ("hip", "rocm", "rocm")):
        version = re.match(r"([0-9]+)\.([0-9]+)", facts.get(key) or "")
        if version is not None:
            return [f"{prefix}{version[1]}{version[2]}", family]
    # PyTorch writes oneAPI 2025.3.2 as 20250302.
    xpu = re.fullmatch(r"([0-9]{4})([0-9]{2})[0-9]{2}", facts.get("xpu") or "")
    if xpu is not None:
        return [f"xpu{xpu[1]}{int(xpu[2])}", "xpu"]
    return ["metal" if sys.platform == "darwin" else "cpu"]
