"""What a wheel says of itself, as the audit reads it."""

import pytest

from builder import audit
from builder.matrix.variant import Variant
from builder.wheel.archive import Wheel


@pytest.mark.parametrize(
    ("label", "tag"),
    [
        pytest.param("torch.cuda", "py3-none-manylinux_2_28_x86_64", id="noarch for one platform"),
        pytest.param("torch213.cxx11.cpu", "cp39-abi3-linuxish_x86_64", id="unknown platform"),
    ],
)
def test_a_label_that_is_of_no_variant_is_of_none_for_the_audit(make_wheel, label, tag):
    path = make_wheel(label=label, tag=tag)
    platform = tag.split("-")[2]
    with pytest.raises(ValueError, match="is not"):
        Variant.of_wheel(label, platform)
    found = audit.run(Wheel.read(path), plan=audit.AuditPromise()).findings
    assert "do not go together" in next(each.why for each in found if each.symbol == "backend.type")
