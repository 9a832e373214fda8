"""What is said of the size of a wheel before it is built."""

import pytest

from builder import kernel as kernels
from builder.plan import size_estimate
from builder.plan.ask import Ask, KernelBuild
from tests.audit.conftest import demo_wheel
from tests.given.cells import cell_of
from tests.given.device_code import fatbin, image
from tests.hostile import elf

VARIANT = "torch-stable-abi210-cu130-x86_64-linux"
CODE = {75: 20_000, 80: 60_000, 90: 40_000}


@pytest.fixture
def kernel(tmp_path):
    """Make a kernel of so many CUDA files, for some capabilities, whose wheel may have `limit`."""

    def make(limit, files=2, archs=("7.5", "8.0", "9.0")):
        folder = tmp_path / "demo"
        sources = [f"csrc/f{number}.cu" for number in range(files)]
        for path in ("torch-ext/torch_binding.cpp", "torch-ext/demo/__init__.py", *sources):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).touch()
        (folder / "build.toml").write_text(
            "[general]\nname = 'demo'\nversion = 1\nedition = 6\nlicense = 'MIT'\nbackends = ['cuda']\n"
            + ("" if limit is None else f"[wheel]\nmax-size = '{limit}'\n")
            + "[torch]\nsrc = ['torch-ext/torch_binding.cpp']\nstable-abi = '2.10'\n"
            f"[kernel.demo]\nbackend = 'cuda'\ndepends = ['torch']\nsrc = {sources}\n"
            f"cuda-capabilities = {list(archs)}\n"
        )
        return kernels.load(folder)

    return make


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a wheel of two sources, whose device code is not compressed and all zeros."""
    place = tmp_path / "out"
    place.mkdir()
    one = fatbin(*(image(2, arch, content=bytes(size)) for arch, size in CODE.items()))
    demo_wheel(place, library=elf({"a": one, "b": one}), label="torch.stable210.cu130", backend="cuda")
    return place


def build_of(made, store):
    cell = cell_of(made.config, variant=VARIANT)
    return KernelBuild(kernel=made, cells=(cell,), ask=Ask(store=store, environ={}))


def test_without_a_limit_nothing_is_said_or_kept(kernel, store, folder):
    made = kernel(None)
    size_estimate.remember(store, made, cell_of(made.config, variant=VARIANT), folder)
    assert size_estimate.of(store, made, cell_of(made.config, variant=VARIANT)) is None
    assert not list((store.root / "notes").iterdir())


def test_before_the_first_build_it_says_that_there_is_no_estimate(kernel, store):
    made = kernel("1 MB")
    found = size_estimate.of(store, made, cell_of(made.config, variant=VARIANT))
    assert (found.bytes, found.exceeds) == (None, False)
    assert found.text == "no estimate of its size before its first build here; 1 MB are allowed"
    assert not list(size_estimate.warnings([build_of(made, store)]))


def remembered(kernel, store, folder, limit="1 kB"):
    made = kernel(limit)
    size_estimate.remember(store, made, cell_of(made.config, variant=VARIANT), folder)
    return made, next(folder.glob("*.whl")).stat().st_size


def test_what_did_not_change_has_the_size_that_it_had(kernel, store, folder):
    made, size = remembered(kernel, store, folder)
    assert size_estimate.of(store, made, cell_of(made.config, variant=VARIANT)).bytes == size


def test_a_wheel_that_will_be_too_large_is_a_warning_with_three_ways_out(kernel, store, folder):
    made, _ = remembered(kernel, store, folder, limit="0.1 kB")
    (line,) = size_estimate.warnings([build_of(made, store)])
    assert line.startswith(f"warning: {VARIANT}: its wheel will have about ")
    assert "more than the 0.1 kB of wheel.max-size: compress the" in line
    assert line.count("; or ") == 2


def test_one_that_is_small_enough_is_no_warning(kernel, store, folder):
    made, _ = remembered(kernel, store, folder, limit="1 MB")
    assert not list(size_estimate.warnings([build_of(made, store)]))
    assert size_estimate.of(store, made, cell_of(made.config, variant=VARIANT)).text.endswith(
        "by its last build here; 1 MB are allowed"
    )


@pytest.mark.parametrize(
    ("change", "share"),
    [
        ({"files": 4}, 2.0),
        ({"archs": ("8.0",)}, 60 / 120),
        ({"archs": ("7.5", "8.0", "9.0", "10.0")}, 160 / 120),
        ({"files": 1, "archs": ("9.0",)}, 20 / 120),
    ],
    ids=["more files", "fewer capabilities", "a new one takes what others take", "both"],
)
def test_it_follows_sources_and_capabilities(kernel, store, folder, change, share):
    _, size = remembered(kernel, store, folder)
    made = kernel("1 kB", **change)
    assert size_estimate.of(store, made, cell_of(made.config, variant=VARIANT)).bytes == pytest.approx(
        size * share, rel=0.05
    )


def test_a_note_that_another_version_wrote_is_none(kernel, store, folder):
    made, _ = remembered(kernel, store, folder)
    store.set_note(f"size-demo-{VARIANT}", {"sizes": 3})
    assert size_estimate.of(store, made, cell_of(made.config, variant=VARIANT)).bytes is None


def test_a_folder_without_a_wheel_or_with_a_damaged_one_is_not_remembered(kernel, store, tmp_path):
    made = kernel("1 kB")
    size_estimate.remember(store, made, cell_of(made.config, variant=VARIANT), tmp_path / "nothing")
    (tmp_path / "demo-1-py3-none-any.whl").write_bytes(b"PK")
    size_estimate.remember(store, made, cell_of(made.config, variant=VARIANT), tmp_path)
    assert size_estimate.of(store, made, cell_of(made.config, variant=VARIANT)).bytes is None
