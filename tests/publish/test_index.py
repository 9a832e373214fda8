import hashlib
import json
import os
import re
import threading
import time
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from builder import wording
from builder.cli import run
from builder.config import Version
from builder.errors import BuilderError
from builder.matrix import variant
from builder.matrix.variant import Variant
from builder.publish import index
from builder.publish.index import grid
from builder.publish.index.contents import UNFINISHED
from builder.publish.index.table import Table, fitting
from builder.wheel import kernel_wheel
from tests.given.files import tree
from tests.given.pages import tags
from tests.wheels import make

NAMES = [
    "torch212-cxx11-cpu-x86_64-linux",
    "torch213-cxx11-cpu-x86_64-linux",
    "torch213-cxx11-cpu-aarch64-linux",
    "torch213-cxx11-cu130-x86_64-linux",
    "torch213-metal-aarch64-darwin",
]


@pytest.fixture
def dist(dist):
    for name in NAMES:
        variant = Variant.parse(name)
        make(dist, "relu", variant, requires=[f"torch=={variant.version}.*", "einops"])
    make(dist, "silu-and-mul", Variant.parse("torch-cuda"))
    return dist


@pytest.fixture
def site(indexed):
    return indexed("--base-url", "https://example.org/k/")


def target(site, page, href):
    """Return the file that a link of a page leads to, as a web server would."""
    address = urlsplit(urljoin(f"http://host/{page.relative_to(site).as_posix()}", href))
    path = site / unquote(address.path).lstrip("/")
    return path / "index.html" if address.path.endswith("/") else path


def test_every_link_leads_to_a_file(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 10
    for page in pages:
        for link in (given for tag, given in tags(page.read_text(encoding="utf-8")) if tag == "a"):
            assert target(site, page, link["href"]).is_file() or link["href"].startswith("#"), (page, link)


def test_html_and_json_say_the_same_and_the_hashes_are_right(site):
    page = site / "simple" / "relu" / "index.html"
    table = json.loads(page.with_name("index.json").read_text())
    assert table["meta"] == {"api-version": "1.4"}
    assert table["name"] == "relu"
    assert len(table["files"]) == len(NAMES)
    assert len(table["versions"]) == len({file["filename"].split("-")[1] for file in table["files"]})
    links = [given for tag, given in tags(page.read_text(encoding="utf-8")) if tag == "a"]
    for link, file in zip(links, table["files"], strict=True):
        wheel = target(site, page, file["url"])
        content = wheel.read_bytes()
        assert link["href"] == f"{file['url']}#sha256={file['hashes']['sha256']}"
        assert hashlib.sha256(content).hexdigest() == file["hashes"]["sha256"]
        assert (wheel.name, len(content)) == (file["filename"], file["size"])
        metadata = wheel.with_name(f"{wheel.name}.metadata").read_bytes()
        assert {"sha256": hashlib.sha256(metadata).hexdigest()} == file["core-metadata"]
        assert link["data-core-metadata"] == f"sha256={file['core-metadata']['sha256']}"
        assert link["data-requires-python"] == file["requires-python"] == ">=3.9"
        assert b"Requires-Dist: einops" in metadata


def test_an_index_for_one_torch_and_compute_lists_what_fits_it_alone(site):
    fitting = {
        "torch213-cpu": ["manylinux_2_28_aarch64.whl", "manylinux_2_28_x86_64.whl"],
        "torch213-cu130": ["manylinux_2_28_x86_64.whl"],
        "torch213-metal": ["macosx_15_0_arm64.whl"],
    }
    for environment, platforms in fitting.items():
        files = json.loads((site / "for" / environment / "simple/relu/index.json").read_text())["files"]
        assert sorted(file["filename"].split("-")[-1] for file in files) == platforms
    assert not (site / "for" / "torch212-cu130" / "simple" / "relu").exists()
    assert (site / "for" / "torch212-cu130" / "simple" / "silu-and-mul").is_dir()
    assert not (site / "for" / "torch212-cpu" / "simple" / "silu-and-mul").exists()


@pytest.mark.parametrize(
    ("name", "torch", "compute", "fits"),
    [
        ("torch213-cxx11-cu130-x86_64-linux", "2.13", "cu130", True),
        ("torch213-cxx11-cu130-x86_64-linux", "2.13", "cu132", False),
        ("torch213-cxx11-cu130-x86_64-linux", "2.12", "cu130", False),
        ("torch-stable-abi29-cpu-x86_64-linux", "2.13", "cpu", True),
        ("torch-stable-abi210-cpu-x86_64-linux", "2.9", "cpu", False),
        ("torch-stable-abi210-cpu-x86_64-linux", "2.13", "cu130", False),
        ("torch-rocm", "2.13", "rocm72", True),
        ("torch-cuda", "2.13", "cu130", True),
        ("torch-cuda", "2.13", "cpu", False),
        ("tvm-ffi01-cu132-x86_64-linux", "2.13", "cu132", True),
        ("tvm-ffi01-cu132-x86_64-linux", "2.13", "cu130", False),
    ],
)
def test_what_fits(name, torch, compute, fits):
    assert variant.fits(Variant.parse(name), torch=Version(torch), compute=compute) is fits


@pytest.mark.parametrize("backend", ["torch-neuron", "torch-npu", "torch-tpu"])
def test_a_wheel_of_a_backend_that_compiles_nothing_is_in_some_index(backend, tmp_path):
    (wheel,) = kernel_wheel.read_all([make(tmp_path, "relu", Variant.parse(backend))])
    assert fitting([wheel])


def test_the_landing_page_shows_each_wheel_with_size_hash_and_command(site, dist):
    page = (site / "kernels" / "relu" / "index.html").read_text()
    for wheel in kernel_wheel.read_all(dist.glob("relu-*.whl")):
        assert wheel.sha256 in page
        assert f"relu=={wheel.wheel.version}" in page
        assert wording.size(wheel.size) in page
    assert "https://example.org/k</span>/for/" in page
    assert "einops" in page


def test_an_unknown_address_is_shown_as_a_word_to_replace(indexed):
    page = (indexed() / "kernels/relu/index.html").read_text()
    assert "<code>URL</code> stands for" in page


def test_the_next_command_is_said_and_its_index_has_the_kernel(dist, tmp_path, capsys):
    site = tmp_path / "site"
    assert run(["index", str(dist), "--output", str(site)]) == 0
    said = capsys.readouterr().err
    assert f"python -m http.server --directory {site} 8000" in said
    place, name = re.search(r"--index-url http://localhost:8000/(\S+/) (\S+)", said).groups()
    assert (site / place / name / "index.html").is_file()


def test_the_next_command_takes_the_address_that_was_given(dist, tmp_path, capsys):
    assert run(["index", str(dist), "--output", str(tmp_path / "site"), "--base-url", "https://example.org/k/"]) == 0
    said = capsys.readouterr().err
    assert "--index-url https://example.org/k/for/" in said
    assert "localhost" not in said


def test_what_a_wheel_says_cannot_become_html(tmp_path):
    path = make(tmp_path, "relu", Variant.parse(NAMES[1]), requires=['torch; python_version > "<b>"'])
    (wheel,) = kernel_wheel.read_all([path])
    wheel.metadata.table["license"] = "<script>alert(1)</script>"
    wheel.metadata.table["source"] = "javascript:alert(1)"
    page = index.build([wheel])["kernels/relu/index.html"].content.decode()
    assert [tag for tag, _ in tags(page)].count("script") == 1  # the site's own
    assert "&lt;script&gt;" in page
    assert "javascript:" not in page
    assert "<b>" not in page


def test_the_newest_version_comes_first_and_every_gap_is_shown(tmp_path):
    paths = [
        make(tmp_path, "relu", Variant.parse(name), version=version)
        for name in NAMES
        for version in ("1.9.0", "1.10.0")
    ]
    wheels = kernel_wheel.read_all(paths)
    grids = grid.grids(Table.of(wheels))
    assert [found["version"] for found in grids] == ["1.10.0", "1.9.0"]
    assert grids[0]["columns"] == ["torch 2.12", "torch 2.13"]
    shape = {(row["compute"], row["system"]): [cell["why"] for cell in row["cells"]] for row in grids[0]["rows"]}
    assert shape == {
        ("CPU", "Linux ARM64"): ["not built", ""],
        ("CPU", "Linux x86_64"): ["", ""],
        ("CUDA 13.0", "Linux x86_64"): ["not built", ""],
        ("Metal", "macOS ARM64"): ["not built", ""],
    }


def test_the_same_wheels_give_the_same_site_whatever_the_order(dist, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    assert run(["index", str(dist), "--output", str(one)]) == 0
    second = tmp_path / "second"
    second.mkdir()
    for path in sorted(dist.glob("*.whl"), reverse=True):
        (second / path.name).write_bytes(path.read_bytes())
        assert run(["index", str(second), "--output", str(other)]) == 0
    assert tree(one) == tree(other)
    assert run(["index", str(dist), "--output", str(one)]) == 0
    assert tree(one) == tree(other)


def test_an_index_that_was_not_finished_is_finished_by_the_next_run_and_not_published(dist, tmp_path, capsys):
    output = tmp_path / "site"
    site = dict(index.build(kernel_wheel.read_all(dist.glob("*.whl"))))
    gone = index.Page(content=tmp_path / "gone.whl", fixed=True)
    with pytest.raises(BuilderError, match="cannot write"):
        index.write(site | {"files/gone.whl": gone}, output)
    assert run(["publish", str(output), str(tmp_path / "www")]) == 3
    assert "was not finished" in capsys.readouterr().err
    assert run(["index", str(dist), "--output", str(output)]) == 0
    assert tree(output) == {
        path: page.content if isinstance(page.content, bytes) else page.content.read_bytes()
        for path, page in site.items()
    }


def test_what_a_run_that_was_killed_left_in_part_is_written_again(dist, site):
    """A first run writes files in place, so each of them may be there in part; the manifest comes last."""
    whole = tree(site)
    (site / "builder-index.json").write_bytes(UNFINISHED)
    for path in whole.keys() - {"builder-index.json"}:
        os.truncate(site / path, (site / path).stat().st_size // 2)
    assert run(["index", str(dist), "--output", str(site), "--base-url", "https://example.org/k/"]) == 0
    assert tree(site) == whole


def test_an_index_that_people_read_is_never_written_in_place(dist, site, monkeypatch):
    monkeypatch.setattr(Path, "replace", Mock(side_effect=OSError(28, "No space left on device")))
    (site / "index.html").write_text("old")
    with pytest.raises(BuilderError, match="cannot write"):
        index.write(dict(index.build(kernel_wheel.read_all(dist.glob("*.whl")))), site)
    assert (site / "index.html").read_text() == "old"


def test_a_wheel_of_the_index_never_changes(dist, site, capsys):
    before = tree(site)
    make(dist, "relu", Variant.parse(NAMES[0]), content="answer = 43\n")
    assert run(["index", str(dist), "--output", str(site)]) == 3
    assert "--wheel-version" in capsys.readouterr().err
    assert tree(site) == before


def test_a_damaged_wheel_of_the_index_is_found(dist, site, capsys):
    damaged = next((site / "files").glob("silu*.whl"))
    damaged.write_bytes(damaged.read_bytes()[:-100])
    next(dist.glob("silu*.whl")).unlink()
    assert run(["index", str(dist), "--output", str(site)]) == 2
    assert damaged.name in capsys.readouterr().err


def test_what_is_wrong_with_wheels_of_several_kernels_is_said_at_once(dist, tmp_path, capsys):
    damaged = [next(dist.glob(f"{name}-*.whl")) for name in ("relu", "silu_and_mul")]
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-100])
    assert run(["index", str(dist), "--output", str(tmp_path / "site")]) == 2
    said = capsys.readouterr().err
    assert all(path.name in said for path in damaged)
    assert not (tmp_path / "site").exists()


def test_a_torch_that_the_wheel_of_one_kernel_names_has_an_index_with_those_of_others(tmp_path):
    paths = [
        make(tmp_path, "norm", Variant.parse("torch299-cxx11-cpu-x86_64-linux")),
        make(tmp_path, "relu", Variant.parse("torch-stable-abi210-cpu-x86_64-linux")),
    ]
    assert "for/torch299-cpu/simple/relu/index.html" in index.build(kernel_wheel.read_all(paths))


def test_a_directory_from_elsewhere_is_left_alone(dist, tmp_path, capsys):
    other = tmp_path / "www"
    other.mkdir()
    (other / "index.html").write_text("mine")
    assert run(["index", str(dist), "--output", str(other)]) == 3
    assert "is not an index of this tool" in capsys.readouterr().err
    assert tree(other) == {"index.html": b"mine"}


@pytest.mark.parametrize(
    "manifest", ["", "[]", '{"files": 1}', '{"files": {"../../x.whl": ""}}', '{"files": {"x": ""}}'], ids=repr
)
def test_a_manifest_that_was_tampered_with_is_refused(dist, site, manifest, capsys):
    (site / "builder-index.json").write_text(manifest)
    assert run(["index", str(dist), "--output", str(site)]) == 3
    assert re.search("delete the index", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        pytest.param(lambda _: None, "is not a directory", id="absent"),
        pytest.param(lambda folder: folder.mkdir(), "has no wheels", id="empty"),
    ],
)
def test_without_wheels_there_is_nothing_to_do(tmp_path, prepare, message, capsys):
    prepare(tmp_path / "dist")
    assert run(["index", str(tmp_path / "dist"), "--output", str(tmp_path / "site")]) == 3
    assert message in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


def test_two_kernels_with_one_name_for_installers_are_refused(tmp_path, capsys):
    dist = tmp_path / "two"
    dist.mkdir()
    for name, version in (("silu-mul", "1.0.0"), ("silu--mul", "2.0.0")):
        make(dist, name, Variant.parse("torch-cuda"), version=version)
    assert run(["index", str(dist), "--output", str(tmp_path / "site")]) == 2
    assert "'silu-mul' and 'silu--mul' are one name" in capsys.readouterr().err


def test_two_wheels_of_one_variant_are_refused(tmp_path, capsys):
    dist = tmp_path / "two"
    dist.mkdir()
    variant = Variant.parse("torch213-cxx11-cpu-x86_64-linux")
    wheels = [make(dist, "relu", variant), make(dist, "relu", variant, tag="cp39-abi3-manylinux_2_34_x86_64")]
    make(dist, "relu", variant, version="1.0.1")
    assert run(["index", str(dist), "--output", str(tmp_path / "site")]) == 2
    said = capsys.readouterr().err
    assert "two wheels are of one version and variant" in said
    assert all(str(wheel) in said for wheel in wheels)
    assert "1.0.1" not in said
    assert not (tmp_path / "site").exists()


def test_the_newest_torch_comes_first_and_is_the_one_that_is_chosen(site):
    page = (site / "kernels/relu/index.html").read_text()
    assert re.findall(r'name="torch" value="(\w+)"( checked)?>', page) == [("torch213", " checked"), ("torch212", "")]
    listed = re.findall(r"/for/(torch[0-9]+)-", (site / "index.html").read_text())
    assert listed == sorted(listed, reverse=True)


def test_two_that_add_to_an_index_at_once_lose_no_wheel(tmp_path):
    """The second waits until the first has written, and only then reads what is there."""
    output, waiting = tmp_path / "site", threading.Event()
    for name in ("relu", "gelu"):
        (tmp_path / name).mkdir()
        make(tmp_path / name, name, Variant.parse("torch213-cxx11-cpu-x86_64-linux"))
    second = threading.Thread(
        target=lambda: (waiting.set(), run(["index", str(tmp_path / "gelu"), "--output", str(output)]))
    )
    with index.held(output):
        second.start()
        waiting.wait(60)
        time.sleep(0.2)  # it would have read the index by then
        paths = tuple((tmp_path / "relu").glob("*.whl"))
        index.write(index.build(kernel_wheel.read_all(paths)), output)
    second.join(60)
    assert {path.name.partition("-")[0] for path in index.existing(output)} == {"relu", "gelu"}


def test_a_run_that_ends_in_an_error_leaves_no_folder(tmp_path):
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist/relu-1.0.0-py3-none-any.whl").write_bytes(b"no archive")
    assert run(["index", str(tmp_path / "dist"), "--output", str(tmp_path / "site")]) != 0
    assert not (tmp_path / "site").exists()
