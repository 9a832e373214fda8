"""Make a wheel ask for the version that it was built with, on which its ABI depends."""

import re
from importlib.metadata import version


def dynamic_metadata(settings, project):
    """Return the requirement on `settings["package"]`, as scikit-build-core asks for it."""
    package = settings["package"]
    built_with = version(package)
    major, minor = built_with.split(".")[:2]
    if settings.get("newer"):  # within a minor version, its ABI only grows
        least = max(built_with, settings["at-least"], key=release)
        return {"dependencies": [f"{package}>={least},<{major}.{int(minor) + 1}"]}
    return {"dependencies": [f"{package}=={major}.{minor}.*"]}


def release(text):
    """Return the numbers of a version before any suffix, as they are compared."""
    return [int(number) for number in re.match(r"[0-9]+(\.[0-9]+)*", text)[0].split(".")]


def dynamic_wheel(settings):
    """Say that a wheel knows more of its dependencies than a source archive."""
    return {"dependencies": True}
