"""Make a wheel ask for the version that it was built with, on which its ABI depends."""

from importlib.metadata import version


def dynamic_metadata(settings, project):
    """Return the requirement on `settings["package"]`, as scikit-build-core asks for it."""
    package = settings["package"]
    built_with = version(package)
    major, minor = built_with.split(".")[:2]
    if settings.get("newer"):  # within a minor version, its ABI only grows
        return {"dependencies": [f"{package}>={built_with},<{major}.{int(minor) + 1}"]}
    return {"dependencies": [f"{package}=={major}.{minor}.*"]}


def dynamic_wheel(settings):
    """Say that a wheel knows more of its dependencies than a source archive."""
    return {"dependencies": True}
