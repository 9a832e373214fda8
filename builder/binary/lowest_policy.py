"""The lowest manylinux policy that a library meets, and the symbols that keep it from an older one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from builder.binary.extension import Extension
from builder.binary.manylinux import Policy, policies


def obstacles(extension: Extension, policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield what `policy` lacks: each symbol, or the bare version, with the reason."""
    users: dict[tuple[str | None, str], list[str]] = {}
    for symbol in extension.undefined:
        if symbol.version is not None:
            users.setdefault((symbol.library, symbol.version), []).append(symbol.name)
    for library, version in extension.versions:
        if policy.admits(version):
            continue
        for name in sorted(users.get((library, version), [""])):
            wanted = f"{name}@{version}" if name else version
            yield wanted, f"{policy.name} has no {version} in {library}"
    for library in dict.fromkeys(extension.needed):
        private = policy.private.get(library, frozenset())
        for symbol in extension.undefined if private else ():
            if symbol.name in private:
                yield symbol.name, f"it is private to some versions of {library}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LowestPolicy:
    """The lowest policy that libraries meet, and what keeps them from the one below."""

    policy: Policy | None
    """None when they meet not even the newest."""
    below: Policy | None
    """The next lower policy; None at the lowest there is."""
    offending: tuple[str, ...] = ()
    """Each symbol that `below` lacks, as `name@VERSION`."""

    @property
    def name(self) -> str:
        """Name of the policy; `linux` if none is met."""
        return "linux" if self.policy is None else self.policy.name


def lowest_policy(extensions: Iterable[Extension], machine: str) -> LowestPolicy:
    """Return the lowest policy that the symbols of all `extensions` allow."""
    together, best = tuple(extensions), None
    for policy in reversed(policies(machine)):
        offending = tuple(sorted({symbol for extension in together for symbol, _ in obstacles(extension, policy)}))
        if offending:
            return LowestPolicy(policy=best, below=policy, offending=offending)
        best = policy
    return LowestPolicy(policy=best, below=None)
