import re

import pytest

from builder.config import Backend
from builder.config.values import backend_facts
from builder.resources import CMAKE, TEMPLATES


def test_each_table_is_a_backend_in_the_order_of_the_alphabet():
    assert [backend.value for backend in Backend] == list(backend_facts()) == sorted(backend_facts())


@pytest.mark.parametrize("backend", Backend, ids=str)
def test_a_backend_can_be_part_of_a_name_in_python_and_cmake(backend):
    assert re.fullmatch(r"[a-z]+", backend.value)


def test_no_two_backends_have_one_name_in_variants():
    for names in (
        [backend.facts.noarch_variant for backend in Backend],
        [backend.facts.toolkit_prefix or backend.value for backend in Backend],
    ):
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("backend", [each for each in Backend if each.facts.components], ids=str)
def test_a_backend_with_components_has_what_compiles_them(backend):
    assert f"function(kernel_{backend}_component" in (CMAKE / f"{backend}/component.cmake").read_text(encoding="utf-8")
    assert any((TEMPLATES / f"init/torch/{backend.facts.init}").rglob("*.j2"))


def test_a_backend_without_components_says_nothing_of_compilers():
    for backend in Backend:
        facts = backend.facts
        if not facts.components:
            assert (facts.toolkit_prefix, facts.device_code, facts.sources, facts.file_memory) == (None, False, (), {})
