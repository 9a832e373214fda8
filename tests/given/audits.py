"""Wheels that are audited, and what the checks are given of one."""

import hashlib
import json
import sys

from builder import audit
from builder.audit.subject import FrameworkClaim, Library, MemberFile, Subject
from builder.binary.elf_symbols import Symbol
from builder.binary.extension import Extension
from builder.config.values import Backend, Framework, Version
from builder.wheel.archive import Wheel
from tests.given.processes import output

# One process for all: its imports take longer than what it does.
AUDITWHEEL = """
import sys
from auditwheel.main import main
for path in sys.argv[1:]:
    sys.argv = ["auditwheel", "show", "--json", "--disable-isa-ext-check", path]
    main()
    print(chr(0))
"""
USE = '\n__attribute__((visibility("default"))) void *used[] = {'


def findings(path, **plan):
    """Return the rule and the symbol of each finding of a wheel."""
    report = audit.run(Wheel.read(path), plan=audit.AuditPromise(**plan))
    return {(finding.rule, finding.symbol) for finding in report.findings}


def calls(*symbols):
    """Return C++ that needs these mangled symbols, whatever they are."""
    declared = "".join(f'extern "C" void {symbol}(void);\n' for symbol in symbols)
    return declared + USE + ", ".join(f"(void *)&{symbol}" for symbol in symbols) + "};\n"


def by_auditwheel(wheels):
    """Return the policies that auditwheel finds of wheels, by their names."""
    *said, _ = output(sys.executable, "-c", AUDITWHEEL, *wheels.values()).split("\0")
    return {name: json.loads(each)["sym_tag"] for name, each in zip(wheels, said, strict=True)}


def library(name="demo/a.so", *, undefined=(), defined=(), headers=(), **fields):
    """Return a library that needs and defines these symbols, or those of these names, as the checks see it."""
    needs, gives = (
        tuple(Symbol(name=each, defined=given, binding="global") if isinstance(each, str) else each for each in symbols)
        for given, symbols in ((False, undefined), (True, defined))
    )
    extension = Extension(name=name, undefined=needs, defined=gives, **fields)
    return Library(extension=extension, headers=frozenset(map(Version, headers)))


def subject(*libraries, framework=Framework.TORCH, backend=Backend.CPU, version="2.13", stable=False, texts=(),
            metadata=None, files=(), **fields):  # fmt: skip
    """Return the wheel of a kernel `demo` with these libraries, as the checks see it; `fields` are of the `Subject`."""
    texts = {name: text if isinstance(text, bytes) else text.encode() for name, text in dict(texts).items()}
    if metadata is not None:
        texts["demo/metadata.json"] = json.dumps(metadata).encode()
    contents = dict.fromkeys([*files, *(each.name for each in libraries)], b"") | texts
    usual = {
        "name": "demo",
        "version": "1.0.0",
        "dist_info": "demo-1.0.0.dist-info",
        "tags": ("cp39-abi3-manylinux_2_28_x86_64",),
        "facts": FrameworkClaim(
            framework=framework, backend=backend, version=version and Version(version), stable=stable
        ),
        "files": {
            name: MemberFile(size=len(content), sha256=hashlib.sha256(content).digest())
            for name, content in contents.items()
        },
        "texts": texts,
        "libraries": libraries,
    }
    return Subject(**(usual | fields))
