"""Arguments of a setup.py that are of the wrong type, too long or hostile become a config that is valid."""

import pytest

from tests.port.projects import ported

CALL = """
from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension
setup(ext_modules=iter([CUDAExtension({extension})]), {setup})
"""
USUAL = "'x', ['csrc/scale.cu']"
CASES = {
    "names that are none": ("name=7, version=1.5, packages=None", USUAL),
    "lists for tables": ("name=['a'], package_dir=[], package_data=[]", "'x', 'csrc/scale.cu'"),
    "macros of every length": ("", f"{USUAL}, define_macros=['A', ('B',), ('C', 1, 2), (), 5]"),
    "texts for lists": ("", f"{USUAL}, extra_compile_args='-O2', libraries='cublas'"),
    "nothing for lists": ("", f"{USUAL}, extra_compile_args=dict(nvcc=None), include_dirs=None, libraries=None"),
    "control characters": (r"name='x\\0', version='\\n'", r"'\\x1b', ['\\0.cu', 'csrc/scale.cu']"),
    "flags without a value": ("", f"{USUAL}, extra_compile_args=['-gencode', '-gencode=', '-D', '-I', '', '-arch']"),
    "long names": ("name='x' * 9999, packages=['y' * 9999]", "'x' * 9999, ['csrc/scale.cu', 'z' * 9999 + '.cu']"),
    "folders out of the project": ("packages=['..', '/etc']", f"{USUAL}, include_dirs=['..', '', 'a:b', '/etc']"),
    "globs out of the project": ("package_data={'': ['../*', '/etc/*', '**/*', '[']}", USUAL),
    "requirements that are none": ("install_requires='a\\nb>=1\\n@@', classifiers=7", USUAL),
    "many sources that are not there": ("", "'x', ['%d.cu' % number for number in range(999)]"),
    "one name twice": ("", f"{USUAL}), CUDAExtension({USUAL}"),
}


@pytest.mark.parametrize("name", CASES)
def test_whatever_is_passed_the_config_is_valid_and_the_list_short(tmp_path, name):
    setup, extension = CASES[name]
    found = ported(tmp_path, CALL.format(setup=setup, extension=extension))
    assert found.config.general.edition == 5
    assert len(found.remaining) < 20
    assert all(line.isprintable() for line in found.files["build.toml"].splitlines())
