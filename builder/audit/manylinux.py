"""Check the manylinux policy that the wheel's tag promises, and the linking of its libraries."""

import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from builder.audit.report import Finding
from builder.audit.subject import Library, Subject, requirements
from builder.binary import policies
from builder.binary.policies import Policy
from builder.config import libraries

RULE = "manylinux"

_TAG = re.compile(r"(manylinux_[0-9]+_[0-9]+|manylinux1|manylinux2010|manylinux2014)_(.+)$")
_ALIASES = {"manylinux1": "manylinux_2_5", "manylinux2010": "manylinux_2_12", "manylinux2014": "manylinux_2_17"}
_ORIGIN = re.compile(r"(\$ORIGIN|\$\{ORIGIN\})(/|$)")


def check(subject: Subject) -> Iterator[Finding]:
    """Judge each library by the lowest policy among the wheel's tags."""
    if not subject.libraries or all(platform.startswith("macosx_") for platform in subject.platforms):
        return
    promised = _promised(subject)
    if isinstance(promised, Finding):
        yield promised
    for library in subject.libraries:
        if isinstance(promised, Policy):
            yield from _policy(library, promised)
            yield from _needed(library, promised, subject)
        yield from _linking(library)


def _promised(subject: Subject) -> Policy | Finding:
    found: list[Policy] = []
    for platform in subject.platforms:
        match = _TAG.match(platform)
        known = {policy.name: policy for policy in policies.policies(match[2])} if match else {}
        name = _ALIASES.get(match[1], match[1]) if match else ""
        if name not in known:
            extensions = [library.extension for library in subject.libraries]
            lowest = policies.lowest_policy(extensions, extensions[0].machine)
            worst = ", ".join(lowest.offending[:3]) or extensions[0].machine
            allowed = f"none; {worst} keeps it from every policy" if lowest.policy is None else lowest.policy.tag
            why = "this platform tag promises no manylinux policy that is known"
            remedy = f"tag it with the policy that its symbols allow: {allowed}"
            return Finding(f"{subject.dist_info}/WHEEL", RULE, platform, why, remedy)
        found.append(known[name])
    return min(found, key=lambda policy: policies.policies(policy.machine).index(policy))


def _policy(library: Library, policy: Policy) -> Iterator[Finding]:
    extension = library.extension
    if extension.format != "ELF" or extension.machine != policy.machine:
        why = f"the library is {extension.format} for {extension.machine}, the wheel's tag says {policy.tag}"
        remedy = "build it for the machine that the tag names"
        yield Finding(library.name, RULE, extension.machine, why, remedy)
        return
    lowest = policies.lowest_policy((extension,), policy.machine)
    for symbol, reason in policies.obstacles(extension, policy):
        remedy = (
            "build on the oldest system that the tag promises, or avoid the symbol"
            if lowest.policy is None
            else f"avoid the symbol, or tag the wheel {lowest.policy.tag}"
        )
        yield Finding(library.name, RULE, symbol, reason, remedy)


def _needed(library: Library, policy: Policy, subject: Subject) -> Iterator[Finding]:
    patterns: tuple[str, ...] = ()
    if subject.facts is not None:
        framework, backend = str(subject.facts.framework), str(subject.facts.backend)
        patterns = policies.loaded(framework, backend, one_python=subject.python is not None)
    required = requirements(subject.text(f"{subject.dist_info}/METADATA"))
    carried = {posixpath.basename(name) for name in subject.files}
    for needed in library.extension.needed:
        if needed in policy.libraries or needed in policies.loaders():
            continue
        if any(fnmatchcase(needed, pattern) for pattern in patterns):
            continue
        if not libraries.distributions(needed).isdisjoint(required):
            continue  # a required package provides the library, and `_ops.py` loads it
        why = (
            "the wheel carries its own copy of this library, which would stand beside the one of the system or of torch"
            if needed in carried
            else f"neither {policy.name} nor what the framework has loaded includes this library"
        )
        remedy = "link it statically, or use what the framework offers in its place"
        yield Finding(library.name, RULE, needed, why, remedy)


def _linking(library: Library) -> Iterator[Finding]:
    extension = library.extension
    for entry in extension.rpath:
        if _ORIGIN.match(entry) is None or ".." in entry.split("/"):
            yield Finding(
                library.name,
                RULE,
                entry or "(empty)",
                "its RPATH or RUNPATH leads out of the directory it is installed in, to files of the machine that "
                "built it or of anyone",
                "set CMAKE_BUILD_WITH_INSTALL_RPATH=ON, and INSTALL_RPATH to nothing or to $ORIGIN",
            )
    if extension.textrel:
        why = "the loader would have to write into its code, which hardened systems refuse"
        yield Finding(library.name, RULE, "DT_TEXTREL", why, "compile every object, assembler too, with -fPIC")
    if extension.executable_stack:
        why = "loading it makes the stack of the process executable, which glibc 2.41 and hardened systems refuse"
        remedy = "link with -Wl,-z,noexecstack, and give assembler files a .note.GNU-stack section"
        yield Finding(library.name, RULE, "PT_GNU_STACK", why, remedy)
