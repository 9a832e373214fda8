"""Signatures of variants: what becomes of one that is missing, damaged, of another signer or right."""

import json

import pytest

from builder import cli
from builder.matrix.variant import Variant
from builder.publish import bundle, hub, signature
from builder.publish.signature import Refused, Signer
from builder.wheel import kernel_wheel
from tests.wheels import make

SIGNER = Signer(identity="https://example.org/.github/workflows/build.yaml@refs/heads/main")


@pytest.fixture
def layout(tmp_path):
    wheels = [make(tmp_path, "relu", Variant.parse(name)) for name in ("torch-cpu", "torch-cuda")]
    bundle.write(bundle.lay_out(kernel_wheel.read_all(wheels)), tmp_path / "build")
    return tmp_path / "build"


def signed(content, given, signer):
    """Verify a made-up bundle: the name of a signer, and what was signed."""
    said = json.loads(given)
    if said != {"by": signer.identity, "of": content.decode()}:
        raise Refused("it does not verify: \x1b[31mno")


def give(variant, *, by=SIGNER.identity, of=None):
    content = (variant / "metadata.json").read_text() if of is None else of
    (variant / "metadata.json.sigstore").write_text(json.dumps({"by": by, "of": content}))


def test_a_right_signature_has_no_finding(layout):
    give(layout / "torch-cpu")
    assert signature.check(layout / "torch-cpu", SIGNER, signed) == ()


@pytest.mark.parametrize("wrong", [{"by": "me@example.org"}, {"of": "{}"}])
def test_one_of_another_signer_or_of_other_content_is_an_error(layout, wrong):
    give(layout / "torch-cpu", **wrong)
    (finding,) = signature.check(layout / "torch-cpu", SIGNER, signed)
    assert (finding.severity, finding.file) == ("error", "torch-cpu/metadata.json.sigstore")
    assert "does not verify" in finding.why
    assert "\x1b" not in finding.why


def test_a_missing_one_is_an_error_only_where_one_is_wanted(layout):
    (finding,) = signature.check(layout / "torch-cpu", SIGNER, signed)
    assert finding.why == "the variant has no signature"
    assert signature.check(layout / "torch-cpu", None, None) == ()
    give(layout / "torch-cpu")
    (note,) = signature.check(layout / "torch-cpu", None, None)
    assert note.severity == "note"


def test_one_that_is_a_link_or_too_large_is_an_error(layout, tmp_path):
    path = layout / "torch-cpu/metadata.json.sigstore"
    (tmp_path / "elsewhere").write_text("{}")
    path.symlink_to(tmp_path / "elsewhere")
    assert "not a plain file" in signature.check(layout / "torch-cpu", SIGNER, signed)[0].why
    path.unlink()
    path.write_bytes(bytes(5 << 20))
    assert "more than" in signature.check(layout / "torch-cpu", SIGNER, signed)[0].why


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[" * 100_000, b'{"mediaType": "x"}'])
def test_the_library_itself_refuses_what_is_no_bundle(layout, monkeypatch, content):
    library = pytest.importorskip("sigstore.verify")
    offline = library.Verifier.production(offline=True)  # by the roots that it was published with
    monkeypatch.setattr(library.Verifier, "production", lambda **_options: offline)
    (layout / "torch-cpu/metadata.json.sigstore").write_bytes(content)
    (finding,) = signature.check(layout / "torch-cpu", SIGNER, signature.verifier())
    assert "it is not a bundle of sigstore" in finding.why


def test_the_audit_says_who_has_not_signed(layout, monkeypatch, capsys):
    monkeypatch.setattr(signature, "verifier", lambda _config: signed)
    give(layout / "torch-cpu")
    give(layout / "torch-cuda", by="me@example.org")
    assert cli.run(["audit", str(layout), "--signed-by", SIGNER.identity]) == 5
    out = capsys.readouterr().out
    assert "torch-cpu: ok (" in out
    assert "error: torch-cuda/metadata.json.sigstore: signature" in out
    assert cli.run(["audit", str(layout)]) == 0
    assert "note: torch-cpu/metadata.json.sigstore" in capsys.readouterr().out
    (wheel,) = layout.parent.glob("*torch.cpu*.whl")
    assert cli.run(["audit", str(wheel), "--signed-by", SIGNER.identity]) == 2


def test_a_signature_is_published_and_a_second_bundle_keeps_it(layout, tmp_path):
    give(layout / "torch-cpu")
    assert "build/torch-cpu/metadata.json.sigstore" in hub.read(layout).files
    wheels = kernel_wheel.read_all(sorted(tmp_path.glob("*.whl")))
    assert bundle.write(bundle.lay_out(wheels), layout) == ()
    assert (layout / "torch-cpu/metadata.json.sigstore").is_file()
    commit = bundle.Commit(id="a" * 40)
    assert len(bundle.write(bundle.lay_out(wheels, commit=commit), layout, overwrite=True)) == 2
    assert not (layout / "torch-cpu/metadata.json.sigstore").exists()


def test_without_an_identity_nothing_is_signed(layout, tmp_path, monkeypatch, capsys):
    pytest.importorskip("sigstore.sign")
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "CIRCLECI", "SIGSTORE_ID_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sigstore.oidc.detect_credential", lambda: None)
    wheels = sorted(map(str, tmp_path.glob("*.whl")))
    assert cli.run(["bundle", *wheels, "--output", str(layout), "--sign"]) == 6
    assert "nothing says who signs" in capsys.readouterr().err
    monkeypatch.setenv("SIGSTORE_ID_TOKEN", "no token")
    assert cli.run(["bundle", *wheels, "--output", str(layout), "--sign"]) == 6
    assert "sigstore did not sign" in capsys.readouterr().err
    (tmp_path / "trust.json").write_text("{")
    options = ["--output", str(layout), "--sign", "--trust-config", str(tmp_path / "trust.json")]
    assert cli.run(["bundle", *wheels, *options]) == 4
    assert "is not a trust configuration of sigstore" in capsys.readouterr().err
