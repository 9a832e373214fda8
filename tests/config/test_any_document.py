"""Any document is decoded or refused, soon and briefly."""

import datetime as dt
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder.config import read
from builder.config.text import Source
from builder.errors import ConfigError
from tests.config.texts import GENERAL, LICENSE, problems_of, refusal_of, source

SCALARS = st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just(dt.date(2020, 1, 1)))


class Given(Source):
    """A source whose document is given: the decoder must stand anything a parser returns."""

    __slots__ = ("document",)

    def __init__(self, document):
        super().__init__(name="build.toml", text="")
        object.__setattr__(self, "document", document)

    def table(self):
        return self.document


NAMES = st.sampled_from(
    [
        "general", "torch", "kernel", "matrix", "torch-noarch", "name", "version", "edition", "backends", "src", "cuda",
        "sources", "git", "rev", "url", "sha256", "submodules", "generate", "script", "outputs", "inputs", "args",
        "stable-abi", "backend", "depends", "kernel-depends", "systems", "universal", "language", "", "x", "\ud800",
        "defines", "libraries", "exclude", "file-flags", "when", "arch", "system", "-Dx", "../x",
        "extension",
    ]
)  # fmt: skip
ANY = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=25,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(document=st.dictionaries(NAMES, ANY, max_size=5))
def test_any_document_is_decoded_or_refused(document):
    error = refusal_of(read, Given(document), license=LICENSE)
    assert error is None or (error.problems and str(error).encode("utf-8"))


ENTRIES = st.one_of(
    SCALARS,
    st.sampled_from(
        ["cut:a.h", "cut:../a", "cuts:a", "made/a.cpp", "../a", "a.py", "{archs}", "{x}", "1" * 40, "1" * 64]
    ),
    st.sampled_from(["https://a.org/b", "https://a.org/b.zip", "ext::sh", "-u", "ssh://-o/x", "a\nb", "file:///etc"]),
)
PLACES = st.dictionaries(st.sampled_from(["git", "rev", "url", "sha256", "submodules", "license"]), ENTRIES, max_size=4)
STEPS = st.fixed_dictionaries(
    {},
    optional={
        "script": ENTRIES,
        **{name: st.one_of(ENTRIES, st.lists(ENTRIES, max_size=3)) for name in ("args", "inputs", "outputs")},
    },
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    sources=st.dictionaries(st.sampled_from(["cut", "fmt", "C", "a b", "../x", ""]), PLACES, max_size=3),
    steps=st.lists(STEPS, max_size=4),
    src=st.lists(ENTRIES, max_size=3),
)
def test_any_sources_and_steps_are_read_or_refused(sources, steps, src):
    general = {"name": "relu", "version": 1, "edition": 5, "license": "MIT", "backends": ["cpu"]}
    document = {"general": general, "torch": {"src": src}, "sources": sources, "generate": steps}
    error = refusal_of(read, Given(document))
    assert error is None or (error.problems and str(error).encode("utf-8"))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("minverr{} = 1", id="unknown keys that look like others"),
        pytest.param("x{} = 1", id="unknown keys"),
        pytest.param("[kernel.k{}]", id="missing keys"),
    ],
)
def test_ten_thousand_mistakes_are_reported_in_linear_time(line):
    lines = "\n".join(line.format(number) for number in range(10_000))
    start = time.process_time()
    problems = problems_of(f"{GENERAL}[torch]\n{lines}\n")
    assert time.process_time() - start < 20  # quadratic, it takes minutes
    assert len(problems) >= 10_000


def test_ten_thousand_bad_values_are_reported_in_linear_time():
    values = "\n".join(f"{number}," for number in range(10_000))
    start = time.process_time()
    problems = problems_of(f"{GENERAL}[torch]\nsrc = [\n{values}\n]\n")
    assert time.process_time() - start < 20  # quadratic, it takes minutes
    assert [problem.span.line for problem in problems] == list(range(9, 10_009))


LONG = 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" * LONG + " = 1\n[torch]\n", id="a bare key"),
        pytest.param('"' + "é" * (LONG // 2) + '" = 1\n[torch]\n', id="a quoted key"),
        pytest.param('upstream = "https://' + "é." * (LONG // 3) + '"\n[torch]\n', id="an international host"),
        pytest.param('upstream = "https://xn--' + "9" * LONG + '"\n[torch]\n', id="a Punycode host"),
        pytest.param('upstream = "https://' + "9" * LONG + '"\n[torch]\n', id="a numeric host"),
        pytest.param('[torch]\nminver = "' + "1" * LONG + '.1"\n', id="a version"),
        pytest.param('[torch-noarch]\ncuda_capabilities = ["sm_' + "9" * LONG + '"]\n', id="a capability"),
        pytest.param('[torch]\nsrc = ["' + "x/" * (LONG // 2) + '/../../../y\\u0000"]\n', id="a path"),
        pytest.param('[torch]\ndefines = { "-D' + "X" * LONG + '=" = 1.5 }\n', id="a macro"),
        pytest.param('[torch]\nlibraries = ["-l' + "x" * LONG + '"]\n', id="a library"),
        pytest.param('[torch]\nexclude = ["' + "*/" * (LONG // 2) + '\\n"]\n', id="a glob"),
        pytest.param('[torch]\n[kernel.k]\nwhen.cuda = "' + ">=1.0," * (LONG // 6) + '"\n', id="a condition"),
        pytest.param('[torch]\n[kernel.k]\nwhen.arch = "sm_' + "9" * LONG + '"\n', id="an architecture"),
        pytest.param("[torch]\n[kernel." + "k" * LONG + "]\nsrc = 1\n", id="a component"),
    ],
)
def test_a_megabyte_in_one_place_is_reported_briefly(text):
    start = time.process_time()
    problems = problems_of(GENERAL + text)
    assert time.process_time() - start < 30  # quadratic, it takes hours
    assert all(len(problem.message) < 500 for problem in problems)
    with pytest.raises(ConfigError) as raised:
        read(source(GENERAL + text))
    assert len(str(raised.value)) < 5_000
