"""Signatures of variants: a sigstore bundle next to `metadata.json`, whose digest covers all other files."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.audit.report import Finding
from builder.errors import PublishError, Severity, ToolError
from builder.files import write_atomic
from builder.metadata import METADATA_FILE, SIGNATURE_FILE
from builder.wording import escaped

RULE = "signature"
GITHUB = "https://token.actions.githubusercontent.com"
"""The issuer for GitHub workflows."""
_LARGEST = 4 << 20
"""The most bytes of a bundle; a real one has ten thousand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """The required signer."""

    identity: str
    """The workflow or the mail address in the certificate."""
    issuer: str = GITHUB


class Refused(Exception):  # noqa: N818  it says what became of a signature
    """A signature that cannot be verified."""


Verify = Callable[[bytes, bytes, Signer], None]
"""Verifies that a bundle is a signer's signature of some content; raises `Refused` otherwise."""


def check(variant: Path, signer: Signer | None, verify: Verify | None) -> tuple[Finding, ...]:
    """Judge the signature of a variant; without a required signer, only report that there is one."""
    path = variant / SIGNATURE_FILE
    if signer is None or verify is None:
        why = "it was not verified: nobody said who must have signed"
        asked = _finding(variant, why, "name the signer with --signed-by", severity="note")
        return (asked,) if path.exists() else ()
    if not path.is_file() or path.is_symlink():
        why = "the variant has no signature" if not path.exists() else "the signature is not a plain file"
        return (_finding(variant, why, "sign it: builder bundle --sign, where the release is built"),)
    try:
        bundle = _read(path)
        verify(_read(variant / METADATA_FILE), bundle, signer)
    except OSError as error:
        return (_finding(variant, f"it cannot be read: {error.strerror}", "fetch the variant again"),)
    except Refused as error:
        return (_finding(variant, escaped(str(error)), "do not use the variant: it is not what that signer published"),)
    return ()


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise Refused(f"{path.name} has more than the {_LARGEST} bytes that are read")
    return content


def _finding(variant: Path, why: str, remedy: str, *, severity: Severity = "error") -> Finding:
    return Finding(f"{variant.name}/{SIGNATURE_FILE}", RULE, "signature", why, remedy, severity=severity)


def _library() -> Any:
    try:
        import sigstore.errors  # noqa: PLC0415  an optional dependency
        import sigstore.models  # noqa: PLC0415
        import sigstore.oidc  # noqa: PLC0415
        import sigstore.sign  # noqa: PLC0415
        import sigstore.verify.policy  # noqa: PLC0415
    except ImportError as error:
        raise ToolError("signatures need sigstore", help="pip install 'kernel-wheel-builder[sign]'") from error
    return sigstore


def verifier(trust_config: Path | None = None) -> Verify:
    """Return a function that verifies bundles with the public sigstore, or with that of a trust configuration.

    Without a network, it uses the roots that the library already knows.

    Raises:
        ToolError: the library is not installed, or the configuration cannot be read.
    """
    library = _library()
    if trust_config is not None:
        made = library.verify.Verifier(trusted_root=_config(library, trust_config).trusted_root)
    else:
        try:
            made = library.verify.Verifier.production()
        except library.errors.Error:
            made = library.verify.Verifier.production(offline=True)

    def verify(content: bytes, bundle: bytes, signer: Signer) -> None:
        policy = library.verify.policy.Identity(identity=signer.identity, issuer=signer.issuer)
        try:
            made.verify_artifact(content, library.models.Bundle.from_json(bundle), policy)
        except library.models.InvalidBundle as error:
            raise Refused(f"it is not a bundle of sigstore: {_first(error)}") from error
        except (library.errors.VerificationError, ValueError) as error:
            raise Refused(f"it does not verify: {_first(error)}") from error

    return verify


def _config(library: Any, path: Path) -> Any:
    try:
        return library.models.ClientTrustConfig.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, library.errors.Error) as error:
        raise ToolError(
            f"'{path}' is not a trust configuration of sigstore: {_first(error)}",
            help="it is what `sigstore --trust-config` takes",
        ) from error


def sign(variants: Iterable[Path], *, token: str | None, trust_config: Path | None = None) -> tuple[Path, ...]:
    """Sign the `metadata.json` of variants, and return the bundles.

    Args:
        variants: Their folders.
        token: An identity token; None asks the CI system for one.
        trust_config: The instance of sigstore, in place of the public one.

    Raises:
        ToolError: the library is not installed.
        PublishError: there is no identity, or the service refuses to sign.
    """
    library = _library()
    config = None if trust_config is None else _config(library, trust_config)
    done: list[Path] = []
    try:
        raw = token or library.oidc.detect_credential()
        if not raw:
            raise PublishError(
                "nothing says who signs",
                help="sign in CI with the permission to write id-tokens, or set SIGSTORE_ID_TOKEN",
            )
        identity = library.oidc.IdentityToken(raw)
        context = library.sign.SigningContext.from_trust_config(config or library.models.ClientTrustConfig.production())
        with context.signer(identity) as signer:
            for variant in variants:
                bundle = signer.sign_artifact((variant / METADATA_FILE).read_bytes())
                write_atomic(variant / SIGNATURE_FILE, bundle.to_json().encode())
                done.append(variant / SIGNATURE_FILE)
    except _refusals(library) as error:
        raise PublishError(
            f"sigstore did not sign: {_first(error)}",
            help="is the token fresh, and can the service be reached? What is signed stays; run it again",
        ) from error
    return tuple(done)


def _refusals(library: Any) -> tuple[type[Exception], ...]:
    """Return the library's exceptions; those of its clients have no common base."""
    from sigstore._internal.fulcio.client import FulcioClientError  # noqa: PLC0415
    from sigstore._internal.rekor import RekorClientError  # noqa: PLC0415

    return (library.errors.Error, library.oidc.IssuerError, FulcioClientError, RekorClientError, OSError)


def _first(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
