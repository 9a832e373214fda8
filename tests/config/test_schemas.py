"""Which schema a config is in, and what an old one becomes."""

import pytest

from builder.config import (
    Backend,
    Framework,
    KernelName,
    Version,
    parse,
    read,
    schema_type,
    source_tables,
    v1,
    v2,
    v3,
    v5,
)
from tests.config.dump import dump
from tests.config.texts import GENERAL, LICENSE, old, problems_of, source


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        pytest.param('[general]\nname = "ab"\n[torch]\nuniversal = true\n', 1, id="universal in torch"),
        pytest.param(
            '[general]\nname = "ab"\n[kernel.a]\nlanguage = "cuda"\nsrc = []\ndepends = []\n', 1, id="language"
        ),
        pytest.param(
            '[general]\nname = "ab"\n[kernel.a]\nsrc = []\ndepends = []\n', 1, id="no language and no backend"
        ),
        pytest.param('[general]\nname = "ab"\n', 2, id="a name"),
        pytest.param('[general]\nname = "ab"\nuniversal = true\n', 2, id="universal in general"),
        pytest.param('[general]\nname = "ab"\n[kernel.a]\nbackend = "cpu"\nsrc = []\ndepends = []\n', 2, id="backend"),
        pytest.param('[general]\nname = "ab"\nbackends = ["cpu"]\n', 3, id="backends"),
        pytest.param('[general]\nname = "ab"\nbackends = ["cpu"]\n[torch]\n', 3, id="backends and torch"),
        pytest.param(
            '[general]\nname = "ab"\nversion = 1\nlicense = "MIT"\nbackends = ["cpu"]\n[torch]\n', 4, id="a license"
        ),
        pytest.param(GENERAL + "[torch]\n", 5, id="an edition"),
    ],
)
def test_the_schema_is_told_by_content(text, schema):
    assert read(source(text), license=LICENSE).schema == schema


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('[general]\nname = "ab"\nversion = 1\nbackends = ["cpu"]\n[torch]\n', id="no license"),
        pytest.param('[general]\nname = "ab"\nlicense = "MIT"\nbackends = ["cpu"]\n[torch]\n', id="no version"),
        pytest.param('[general]\nname = "ab"\nversion = 1\nlicense = "MIT"\n[torch]\n', id="no backends"),
        pytest.param('[general]\nname = "ab"\nversion = 1\nlicense = "MIT"\nbackends = ["cpu"]\n', id="no framework"),
        pytest.param(
            '[general]\nname = "ab"\nversion = 1\nlicense = "MIT"\nbackends = ["cpu"]\n[torch]\nsrc = 1\n', id="a type"
        ),
        pytest.param(
            '[general]\nname = "ab"\nversion = 1\nlicense = "MIT"\nbackends = ["cpu"]\n'
            '[torch.stable-abi]\ncpu = "2.9"\n',
            id="a key of edition 5",
        ),
    ],
)
def test_a_mistake_in_schema_4_is_reported_as_that_mistake(text):
    (problem,) = problems_of(text)
    assert "schema" not in problem.message


@pytest.mark.parametrize(
    ("edition", "message"),
    [
        ("4", "there is no edition 4: 5 is the first"),
        ("0", "there is no edition 0"),
        ("-5", "there is no edition -5"),
        ("7", "edition 7 is newer than 5"),
        ("9" * 30, "a number of many digits is newer than 5"),
        ('"5"', "'edition' must be the integer 5, found a string"),
        ("5.0", "'edition' must be the integer 5, found a float"),
        ("true", "'edition' must be the integer 5, found a boolean"),
        ("[5]", "'edition' must be the integer 5, found an array"),
        ("{}", "'edition' must be the integer 5, found a table"),
    ],
)
def test_another_edition_is_refused(edition, message):
    (problem,) = problems_of(GENERAL.replace("edition = 5", f"edition = {edition}") + "[torch]\n")
    assert message in problem.message
    assert problem.help


def test_schema_1_makes_a_rocm_component_of_one_that_is_hipified():
    config = old(
        '[general]\nname = "ab"\n[torch]\nsrc = ["b.cpp"]\npyext = ["py"]\n[kernel.x]\nlanguage = "cuda-hipify"\n'
        'src = ["x.cu"]\ndepends = ["torch"]\ninclude = ["."]\ncuda-capabilities = ["8.0"]\nrocm-archs = ["gfx90a"]\n'
    )
    shared = {"depends": ("torch",), "src": ("x.cu",), "include": (".",)}
    assert config.kernel == {
        "x": source_tables.CudaComponent(**shared, cuda_capabilities=("8.0",)),
        "x_rocm": source_tables.RocmComponent(**shared, rocm_archs=("gfx90a",)),
    }
    assert config.general == v5.General(name="ab", version=1, license="MIT", backends=(Backend.CUDA, Backend.ROCM))
    assert config.torch == source_tables.Torch(src=("b.cpp",), pyext=("py",))


def test_schema_1_refuses_two_components_of_one_name():
    component = 'src = ["x.cu"]\ndepends = ["torch"]\n'
    text = f'[general]\nname = "ab"\n[kernel.x]\nlanguage = "cuda-hipify"\n{component}[kernel.x_rocm]\n{component}'
    (problem,) = problems_of(text)
    assert problem.code == "B037"
    assert problem.span.line == 7


def test_schema_1_metal_stays_metal():
    config = old('[general]\nname = "ab"\n[kernel.x]\nlanguage = "metal"\nsrc = ["x.mm"]\ndepends = []\n')
    assert config.kernel == {"x": source_tables.component(Backend.METAL)(depends=(), src=("x.mm",))}
    assert config.general.backends == (Backend.METAL,)


@pytest.mark.parametrize("text", ['[torch]\nuniversal = true\npyext = ["py", "md"]\n'])
def test_schema_1_universal_becomes_noarch(text):
    config = old(f'[general]\nname = "ab"\n{text}')
    assert config.framework is Framework.TORCH_NOARCH
    assert config.pyext == ("py", "md")
    assert [str(backend) for backend in config.general.backends] == ["cpu", "cuda", "metal", "rocm", "xpu"]


def test_schema_2_universal_with_sources_keeps_its_framework():
    config = old('[general]\nname = "ab"\nuniversal = true\n[torch]\nsrc = ["a.cpp"]\n')
    assert config.framework is Framework.TORCH
    assert len(config.general.backends) == 5


def test_schema_2_moves_what_is_for_cuda():
    config = old(
        '[general]\nname = "ab"\ncuda-minver = "12.4"\ncuda-maxver = "12.9"\n'
        'python-depends = ["nvidia-cutlass-dsl", "einops"]\n[torch]\n'
    )
    assert config.general.python_depends == ("einops",)
    assert config.general.cuda == v5.CudaGeneral(
        minver=Version("12.4"), maxver=Version("12.9"), python_depends=("nvidia-cutlass-dsl",)
    )


def test_schema_2_takes_the_backends_of_its_components_sorted():
    component = '[kernel.{0}]\nbackend = "{0}"\nsrc = []\ndepends = []\n'
    text = '[general]\nname = "ab"\n[torch]\n' + component.format("xpu") + component.format("cpu")
    assert old(text).general.backends == (Backend.CPU, Backend.XPU)


def test_schema_3_without_a_framework_becomes_noarch():
    config = old('[general]\nname = "ab"\nbackends = ["cpu"]\n')
    assert config.torch_noarch == source_tables.TorchNoarch()
    assert config.general.version == 1


def test_schema_3_with_an_invalid_framework_is_an_error_and_not_noarch():
    (problem,) = problems_of('[general]\nname = "ab"\nbackends = ["cpu"]\n[torch]\nscr = []\n')
    assert (problem.code, problem.help) == ("B010", "did you mean 'src'?")


def test_schema_4_has_one_stable_abi_for_every_backend():
    text = GENERAL.replace("edition = 5\n", "") + '[torch]\nstable-abi = "2.10"\n'
    config = parse(source(text))
    assert config.torch.stable_abi == {Backend.CPU: Version("2.10"), Backend.CUDA: Version("2.10")}
    assert parse(source(dump(config))) == config


def test_every_schema_upgrades_to_the_next():
    assert [schema_type(number) for number in (1, 2, 3)] == [v1.Config, v2.Config, v3.Config]
    general = v1.General(name=KernelName("ab"))
    assert isinstance(v1.Config(general=general).upgrade(), v2.Config)
    assert isinstance(v2.Config(general=v2.General(name=KernelName("ab"))).upgrade(), v3.Config)
