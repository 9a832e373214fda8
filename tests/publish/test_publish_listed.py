"""What is published is what a manifest lists, and never a link."""

import json

import pytest

from builder.cli import run
from builder.errors import PublishError
from builder.matrix.variant import Variant
from builder.publish import hub
from tests.given.files import tree
from tests.wheels import make

CPU = Variant.parse("torch213-cxx11-cpu-x86_64-linux")


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text("hunter2", encoding="utf-8")
    return path


@pytest.fixture
def site(dist, indexed):
    make(dist, "relu", CPU)
    return indexed()


@pytest.fixture
def build(tmp_path):
    wheel = make(tmp_path, "relu", CPU)
    assert run(["bundle", str(wheel), "--output", str(tmp_path / "build")]) == 0
    return tmp_path / "build"


def test_the_manifest_of_a_site_lists_every_file_of_it(site):
    table = json.loads((site / "builder-index.json").read_text(encoding="utf-8"))
    listed = {f"files/{name}" for name in table["files"]} | set(table["made"])
    assert listed == set(tree(site)) - {"builder-index.json"}


@pytest.mark.parametrize("place", ["notes.txt", "files/notes.txt", "simple/notes.txt", ".env"])
@pytest.mark.parametrize("linked", [False, True])
def test_what_nobody_listed_is_not_published(site, secret, tmp_path, place, linked):
    before = tree(site)
    (site / place).symlink_to(secret) if linked else (site / place).write_text("hunter2", encoding="utf-8")
    assert run(["publish", str(site), str(tmp_path / "www")]) == 0
    assert tree(tmp_path / "www") == before


@pytest.mark.parametrize("place", ["index.html", "simple/index.html"])
def test_a_listed_file_that_became_a_link_or_another_is_refused(site, tmp_path, capsys, place):
    content = (site / place).read_bytes()
    (site / place).write_bytes(b"hunter2")
    assert run(["publish", str(site), str(tmp_path / "www")]) == 6
    (tmp_path / "elsewhere").write_bytes(content)
    (site / place).unlink()
    (site / place).symlink_to(tmp_path / "elsewhere")
    assert run(["publish", str(site), str(tmp_path / "www")]) == 6
    assert place in capsys.readouterr().err
    assert not (tmp_path / "www").exists()


def test_a_folder_of_a_site_that_became_a_link_is_refused(site, tmp_path):
    (site / "simple").rename(tmp_path / "elsewhere")
    (site / "simple").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert run(["publish", str(site), str(tmp_path / "www")]) == 6


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../secret", "", ".", "simple/../x", "a\0b"])
def test_a_manifest_that_lists_what_is_elsewhere_is_refused(site, secret, tmp_path, path):
    assert secret.exists()
    table = json.loads((site / "builder-index.json").read_text(encoding="utf-8"))
    table["made"][path] = "0" * 64
    (site / "builder-index.json").write_text(json.dumps(table), encoding="utf-8")
    assert run(["publish", str(site), str(tmp_path / "www")]) == 6


def test_the_hub_gets_what_digests_list_their_signature_and_the_card(build):
    variant = build / str(CPU)
    expected = set(hub.read(build).files)
    (variant / "__pycache__").mkdir()
    (variant / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"x")
    (variant / "evil.pyc").write_bytes(b"x")
    assert set(hub.read(build).files) == expected
    (variant / "metadata.json.sigstore").write_text("{}", encoding="utf-8")
    assert set(hub.read(build).files) == {*expected, f"build/{CPU}/metadata.json.sigstore"}
    listed = json.loads((variant / "metadata.json").read_text(encoding="utf-8"))["digest"]["files"]
    assert expected == {"README.md", *(f"build/{CPU}/{name}" for name in ("metadata.json", *listed))}


@pytest.mark.parametrize("name", ["__init__.py", "metadata.json"])
def test_a_link_in_a_layout_is_refused(build, tmp_path, name):
    path = build / str(CPU) / name
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PublishError, match="not a file of its own"):
        hub.read(build)


def test_a_variant_or_a_card_that_is_a_link_is_refused(build, tmp_path):
    (build / "CARD.md").rename(tmp_path / "card")
    (build / "CARD.md").symlink_to(tmp_path / "card")
    with pytest.raises(PublishError, match="symbolic link"):
        hub.read(build)
    (build / "CARD.md").unlink()
    (build / str(CPU)).rename(tmp_path / "variant")
    (build / str(CPU)).symlink_to(tmp_path / "variant", target_is_directory=True)
    with pytest.raises(PublishError, match="not a file of its own"):
        hub.read(build)


def test_a_deep_document_is_refused_and_no_traceback(site, build, tmp_path):
    deep = "[" * 100_000
    (site / "builder-index.json").write_text(deep, encoding="utf-8")
    assert run(["publish", str(site), str(tmp_path / "www")]) == 6
    (build / str(CPU) / "metadata.json").write_text(deep, encoding="utf-8")
    with pytest.raises(PublishError):
        hub.read(build)
