"""A recording becomes a config that this builder reads, and a list of what remains."""

import pytest

from builder.config.values import Backend
from builder.errors import BuilderError, NothingToDoError
from builder.kernel import load
from builder.kernel.source_set import source_set
from builder.port import write
from builder.port.settings import settings
from tests.port.projects import BINDING, CUDA, OLD, PLAIN, ROCM, SIMPLE, ported

CALL = """
from setuptools import setup
import os, subprocess
import torch
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension
cuda = float(torch.version.cuda or 0)
flags = []
sources = ["csrc/binding.cpp", "csrc/scale.cu"]
{lines}
setup(name="scale", packages=["scale_it"], ext_modules=[
    CUDAExtension("scale._C", sources, extra_compile_args={{"cxx": ["-O3"], "nvcc": flags}})])
"""


def test_a_plain_project_becomes_a_binding_and_a_component(tmp_path):
    found = ported(tmp_path, SIMPLE, files={"LICENSE": "Permission is hereby granted, free of charge, ... " * 2})
    config = found.config
    assert (config.general.name, config.general.version) == ("scale-it", 2)
    assert config.general.backends == (Backend.CUDA,)
    assert config.torch.src == ("csrc/binding.cpp",)
    (component,) = config.kernel.values()
    assert component.src == ("csrc/scale.cu",)
    assert component.include == ("csrc",)
    assert "--use_fast_math" in component.cuda_flags
    assert "-O3" not in component.cuda_flags


def test_values_that_were_guessed_say_where_they_come_from(tmp_path):
    mit = 'Permission is hereby granted, free of charge, to any person. THE SOFTWARE IS PROVIDED "AS IS".'
    text = ported(tmp_path, SIMPLE, files={"LICENSE": mit}).files["build.toml"]
    assert 'name = "scale-it" # from name of setup.py:5\n' in text
    assert "version = 2 # from 2.1, version of setup.py:5\n" in text
    assert 'license = "MIT" # from the text of LICENSE\n' in text


def test_a_license_that_nobody_names_remains(tmp_path):
    found = ported(tmp_path, SIMPLE)
    assert "setup.py:5: no license was found that has an SPDX name: write it into general.license" in found.remaining
    assert found.config.general.license == "LicenseRef-unknown"


def test_half_operators_stay_away_unless_setup_py_brings_them_back(tmp_path):
    lines = 'flags += ["-U__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_HALF_CONVERSIONS__"]'
    (component,) = ported(tmp_path, CALL.format(lines=lines)).config.kernel.values()
    text = str(component)
    assert "__CUDA_NO_BFLOAT16_CONVERSIONS__" in text
    assert "__CUDA_NO_HALF_OPERATORS__" not in text


def test_architectures_of_every_toolkit_are_one_list_where_that_says_it(tmp_path):
    lines = """
flags += ["-gencode", "arch=compute_80,code=sm_80", "-gencode=arch=compute_90a,code=sm_90a"]
if cuda >= 13:
    flags += ["-gencode", "arch=compute_120,code=[sm_120,compute_120]"]
"""
    (component,) = ported(tmp_path, CALL.format(lines=lines), OLD, CUDA).config.kernel.values()
    assert component.cuda_capabilities == ("8.0", "9.0a", "12.0+PTX")


def test_code_for_another_gpu_is_a_pair_and_only_one_of_two_for_a_gpu_is_kept(tmp_path):
    lines = """
flags += ["-gencode=arch=compute_80,code=[sm_80,sm_86]", "-gencode=arch=compute_100f,code=[sm_100,sm_103]"]
flags += ["-gencode=arch=compute_80,code=sm_90", "-gencode=arch=compute_90,code=sm_90"]
"""
    found = ported(tmp_path, CALL.format(lines=lines), CUDA)
    (component,) = found.config.kernel.values()
    assert component.cuda_capabilities == ("8.0", "8.0:8.6", "9.0", "10.0f", "10.0f:10.3f")
    assert any("'8.0:9.0' is left out" in line for line in found.remaining)


def test_architectures_of_the_machine_are_left_to_the_toolkit(tmp_path):
    lines = 'flags.append("-gencode=arch=compute_%d%d,code=sm_%d%d" % (torch.cuda.get_device_capability() * 2))'
    among = [each for each in settings() if each.gpu is not None]
    found = ported(tmp_path, CALL.format(lines=lines), *among)
    assert next(iter(found.config.kernel.values())).cuda_capabilities is None
    assert any("follow the GPU of the machine" in line for line in found.remaining)


def test_flags_that_differ_by_toolkit_get_a_condition(tmp_path):
    lines = 'flags += ["-lineinfo"] if cuda >= 13 else []'
    found = ported(tmp_path, CALL.format(lines=lines), OLD, CUDA)
    parts = found.config.kernel
    assert list(parts) == ["scale_C_before_13_0", "scale_C_from_13_0"]
    assert ["-lineinfo" in part.cuda_flags for part in parts.values()] == [False, True]
    assert 'when = { cuda = ">=13.0" }' in found.files["build.toml"]


def test_sources_of_a_new_toolkit_alone_are_a_component_of_their_own(tmp_path):
    lines = 'sources += ["csrc/new.cu"] if cuda >= 13 else []'
    found = ported(tmp_path, CALL.format(lines=lines), OLD, CUDA, files={"csrc/new.cu": ""})
    parts = {part.src: part.when for part in found.config.kernel.values()}
    assert parts.keys() == {("csrc/new.cu",), ("csrc/scale.cu",)}
    assert parts["csrc/scale.cu",] is None
    assert parts["csrc/new.cu",] is not None


def test_rocm_is_a_backend_where_setup_py_knows_of_it(tmp_path):
    lines = 'flags += ["-DROCM", "--offload-arch=gfx942"] if torch.version.hip else []'
    found = ported(tmp_path, CALL.format(lines=lines), CUDA, ROCM)
    assert found.config.general.backends == (Backend.CUDA, Backend.ROCM)
    assert found.config.components(Backend.ROCM)["scale_C_rocm"].rocm_archs == ("gfx942",)
    uncompared = (
        "flags of components for ROCm are those that setup.py gives there: no compile line of ROCm was compared"
    )
    assert uncompared in found.remaining
    other = ported(tmp_path, CALL.format(lines=""), CUDA, ROCM)
    assert other.config.general.backends == (Backend.CUDA,)
    assert uncompared not in other.remaining


def test_an_extension_for_the_cpu_is_of_the_backend_cpu(tmp_path):
    text = SIMPLE.replace("CUDAExtension", "CppExtension").replace("scale.cu", "scale.cpp")
    found = ported(tmp_path, text, PLAIN, files={"csrc/scale.cpp": ""})
    assert found.config.general.backends == (Backend.CPU,)
    assert found.config.components(Backend.CPU)["scale_it_C_cpu"].src == ("csrc/scale.cpp",)


def test_pybind_asks_for_all_of_the_c_api(tmp_path):
    found = ported(tmp_path, SIMPLE, files={"csrc/binding.cpp": "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n"})
    assert found.config.torch.python_abi == "cpython"


def test_a_target_of_the_stable_abi_is_its_key(tmp_path):
    text = SIMPLE.replace('("WIDTH", "4")', '("TORCH_TARGET_VERSION", "0x020a000000000000")')
    found = ported(tmp_path, text)
    assert str(found.config.torch.stable_abi) == "2.10"
    assert "TORCH_TARGET_VERSION" not in found.files["build.toml"]


def test_without_a_binding_there_is_a_start_for_one(tmp_path):
    found = ported(tmp_path, SIMPLE, files={"csrc/binding.cpp": "int x;\n"})
    assert "TORCH_LIBRARY_EXPAND" in found.files["torch-ext/torch_binding.cpp"]
    assert "setup.py:10: no source registers ops or makes a Python module: write a binding" in found.remaining
    assert list(ported(tmp_path, SIMPLE, files={"csrc/binding.cpp": BINDING}).files) == ["build.toml"]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (('"--use_fast_math"', '"-ccbin", "/usr/bin/gcc"'), "setup.py:15: '-ccbin /usr/bin/gcc' is left out: it "),
        (('"csrc/scale.cu"', '"gen/made.cu"'), "setup.py:12: source 'gen/made.cu' is not there: it is generated or"),
        (('"csrc/scale.cu"', '"../x.cu"'), "setup.py:10: source '../x.cu' is outside of the project"),
        (('["csrc"]', '["/opt/x/include"]'), "setup.py:10: include folder '/opt/x/include' is outside of the project"),
        (('["csrc"]', '["nowhere"]'), "setup.py:10: include folder 'nowhere' is left out: it is not there"),
        (('"-Wall"', '"-std=c++17"'), "setup.py:15: '-std=c++17' is left out: the headers of torch have C++20"),
    ],
)
def test_what_no_key_says_remains_with_its_line(tmp_path, change, line):
    assert any(each.startswith(line) for each in ported(tmp_path, SIMPLE.replace(*change)).remaining)


def test_an_import_below_has_its_dots_and_a_name_in_a_text_and_a_compile_at_import_are_told(tmp_path):
    deep = "import scale_it._C\nfound = find_spec('scale_it._C')\n"
    loads = "from torch.utils.cpp_extension import load\n# cpp_extension.load\nx = cpp_extension.load(name='x')\n"
    files = {"scale_it/sub/__init__.py": deep, "scale_it/ext.py": loads, "scale_it/_C.py": "own = 1\n"}
    text = SIMPLE.replace('packages=["scale_it"]', 'packages=["scale_it", "scale_it.sub"]')
    found = ported(tmp_path, text, files=files).remaining
    assert "scale_it/sub/__init__.py:1: in place of 'scale_it._C', write: from .._ops import ops" in found
    assert (
        "scale_it/sub/__init__.py:2: no module of the wheel is named 'scale_it._C': see what becomes of this" in found
    )
    told = "this compiles when it is imported: take the module of the wheel in every case"
    assert [each for each in found if told in each] == [f"scale_it/ext.py:1: {told}", f"scale_it/ext.py:3: {told}"]


def test_data_that_only_manifest_in_names_is_told(tmp_path):
    files = {"MANIFEST.in": "graft scale_it\n", "scale_it/a/x.txt": "", "scale_it/b.json": "", "scale_it/c.cu": ""}
    told = "MANIFEST.in is not read: unless wheel.data has them, files are left out: "
    assert f"{told}scale_it/a/x.txt and 1 more" in ported(tmp_path, SIMPLE, files=files).remaining


def test_headers_beside_sources_are_listed_and_many_sources_are_a_glob(tmp_path):
    files = {f"csrc/k/{name}.cu": '#include "own.cuh"\n' for name in "abcd"}
    text = SIMPLE.replace('"csrc/scale.cu"', ", ".join(map(repr, files))).replace('include_dirs=["csrc"],', "")
    text = text.replace("csrc/k", "lib/k")
    found = ported(
        tmp_path,
        text,
        files={path.replace("csrc", "lib"): body for path, body in files.items()} | {"lib/k/own.cuh": ""},
    )
    (component,) = found.config.kernel.values()
    assert component.src == ("lib/k/*.cu", "lib/k/own.cuh")


def test_a_submodule_that_is_not_fetched_is_a_source_of_its_own(tmp_path):
    modules = '[submodule "x"]\npath = third/Glm\nurl = https://github.com/g-truc/glm.git\n'
    text = SIMPLE.replace('["csrc"]', '["third/Glm/include"]')
    found = ported(tmp_path, text, files={".gitmodules": modules})
    assert found.config.sources["glm"].git == "https://github.com/g-truc/glm.git"
    assert next(iter(found.config.kernel.values())).include == ("glm:include",)
    assert ".gitmodules:1: write the commit of the submodule 'third/Glm' into sources.glm.rev" in found.remaining


def test_names_that_would_break_the_file_cannot(tmp_path):
    text = SIMPLE.replace('"Scale_It"', '"Scale\\"]\\nx = 1"').replace('"-Wall"', "'-DQ=\"\\n[general]'")
    text = text.replace('"2.1"', '"9\\nlicense"')
    found = ported(tmp_path, text)
    assert (found.config.general.name, found.config.general.version) == ("scale-x-1", 9)


def test_the_same_recording_is_the_same_text(tmp_path):
    assert ported(tmp_path, SIMPLE, OLD, CUDA).files == ported(tmp_path, SIMPLE, OLD, CUDA).files


def test_nothing_is_overwritten_unless_forced(tmp_path):
    found = ported(tmp_path, SIMPLE)
    write(found, tmp_path, force=False)
    with pytest.raises(NothingToDoError, match=r"already has build.toml"):
        write(found, tmp_path, force=False)
    write(found, tmp_path, force=True)
    assert load(tmp_path).config == found.config


def test_the_files_that_are_named_are_there(tmp_path):
    found = ported(tmp_path, SIMPLE)
    write(found, tmp_path, force=False)
    assert {"csrc/scale.h", "scale_it/__init__.py"} <= set(source_set(load(tmp_path)).paths)


def test_a_setup_that_always_fails_is_one_error_with_its_line_and_its_variables(tmp_path):
    text = "import os\nif not os.getenv('SCALE_BUILD'):\n    raise SystemExit('set SCALE_BUILD')\n"
    with pytest.raises(BuilderError) as error:
        ported(tmp_path, text, OLD, CUDA)
    assert "setup.py:3: it ended itself: sys.exit(set SCALE_BUILD)" in str(error.value)
    assert "--env NAME=VALUE gives it: SCALE_BUILD (setup.py:2)" in str(error.value)


def test_a_setup_that_compiles_nothing_is_told_of_its_variables(tmp_path):
    text = "import os\nfrom setuptools import setup\nos.getenv('WITH_CUDA')\nsetup(name='x')\n"
    with pytest.raises(BuilderError, match=r"setup.py:4: setup\(\) is given no extension") as error:
        ported(tmp_path, text)
    assert "WITH_CUDA (setup.py:3)" in str(error.value)


def test_a_folder_of_which_nearly_all_is_compiled_is_a_glob_and_what_is_not(tmp_path):
    made = {f"lib/k/{name}.cu": "" for name in "abcde"}
    text = SIMPLE.replace('"csrc/scale.cu"', ", ".join(map(repr, sorted(made)[:4])))
    (component,) = ported(tmp_path, text, files=made).config.kernel.values()
    assert (component.src, component.exclude) == (("lib/k/*.cu",), ("lib/k/e.cu",))


def test_libraries_have_the_names_of_cmake_and_unknown_ones_remain(tmp_path):
    options = 'libraries=["cublas", "cuda", "c10", "tbb"], extra_link_args=["-lnvrtc", "-s", "-Wl,--wrap=x"],\n'
    found = ported(tmp_path, SIMPLE.replace("define_macros", options + "            define_macros"))
    (component,) = found.config.kernel.values()
    assert component.libraries == ("cublas", "cuda_driver", "nvrtc")
    assert "setup.py:14: library 'tbb' is linked, and no key says so" in found.remaining
    assert "setup.py:14: linker flag '-Wl,--wrap=x' is left out" in found.remaining


def test_a_library_whose_header_a_source_includes_is_named(tmp_path):
    files = {"csrc/scale.cu": "// <cufft.h>\n#include <curand_kernel.h>\n#include <cublas_v2.h>\n"}
    (component,) = ported(tmp_path, SIMPLE, files=files).config.kernel.values()
    assert component.libraries == ("curand",)


def test_macros_of_both_compilers_are_defines_and_others_stay_flags(tmp_path):
    text = SIMPLE.replace('"--use_fast_math"', '"-DONLY_GPU=a\\\\,b"').replace(
        '"csrc/scale.cu"', '"csrc/scale.cu", "csrc/x.cpp"'
    )
    found = ported(tmp_path, text, files={"csrc/x.cpp": ""})
    (component,) = found.config.kernel.values()
    assert component.defines == {"WIDTH": 4, "WITH_X": True}
    assert "-DONLY_GPU=a\\,b" in component.cuda_flags


def test_a_variable_that_was_given_is_not_said_to_be_missing(tmp_path):
    text = "import os\nos.getenv('GIVEN'), os.getenv('_PYTHON_PROJECT_BASE'), os.getenv('OTHER')\n" + SIMPLE
    found = ported(tmp_path, text, variables={"GIVEN": "1"})
    assert "setup.py reads variables; it was run without them: OTHER (setup.py:2)" in found.remaining


def test_the_package_its_requirements_and_its_data_are_those_of_the_wheel(tmp_path):
    wanted = [
        "torch>=2",
        "einops",
        "ninja",
        "rich>=12; python_version<'4'",
        "apache-tvm-ffi<1",
        "triton>=3",
        "x @ https://x.org/x",
    ]
    data = {"scale_it": ["*.json", "py.typed", "none/*"]}
    text = SIMPLE.replace("packages", f"package_data={data},\n    install_requires={wanted},\n    packages")
    found = ported(tmp_path, text, files={"scale_it/a.json": "{}", "scale_it/py.typed": ""})
    assert found.config.general.python_depends == ("einops",)
    assert found.config.wheel.package == "scale_it"
    assert found.config.wheel.requires == ('rich>=12; python_version < "4"', "apache-tvm-ffi<1")
    assert found.config.wheel.data == ("scale_it/*.json", "scale_it/py.typed")
    assert "setup.py:5: the package requires 'x @ https://x.org/x', which no key says" in found.remaining
    assert "setup.py:5: the requirement 'triton>=3' is left out: torch brings triton" in found.remaining


def test_flags_of_nvcc_alone_are_none_of_rocm(tmp_path):
    lines = (
        'flags += ["-DROCM", "-lineinfo", "-diag-suppress", "186", "-Xptxas=-v", "-Wno-x"] if torch.version.hip else []'
    )
    found = ported(tmp_path, CALL.format(lines=lines), CUDA, ROCM)
    flags = found.config.components(Backend.ROCM)["scale_C_rocm"].hip_flags
    assert [flag for flag in flags if flag != "-DROCM"] == ["-Wno-x"]
    left = [each for each in found.remaining if "is left out for ROCm: nvcc alone has it" in each]
    assert [each.partition("'")[2].partition("'")[0] for each in left] == [
        "-lineinfo",
        "-diag-suppress 186",
        "-Xptxas=-v",
    ]


@pytest.mark.parametrize(
    ("version", "kept"), [("2.3.post1", "2.3.post1"), ("v2.3+cu130", "2.3"), ("2.0.0", None), ("2", None)]
)
def test_wheels_keep_the_whole_version(tmp_path, version, kept):
    found = ported(tmp_path, SIMPLE.replace("2.1", version))
    assert found.config.general.version == 2
    assert found.config.wheel.version == kept
    assert not [each for each in found.remaining if "--wheel-version" in each]


def test_a_version_that_wheels_cannot_have_is_told(tmp_path):
    line = "setup.py:5: a wheel has the version 2.0.0 unless --wheel-version names its own: '2.x' is none"
    assert line in ported(tmp_path, SIMPLE.replace("2.1", "2.x")).remaining


def test_several_packages_are_told_to_a_person(tmp_path):
    text = SIMPLE.replace('packages=["scale_it"]', 'packages=["scale_it", "scale_it.ops", "other"]')
    files = {"scale_it/ops/__init__.py": "", "other/__init__.py": ""}
    found = ported(tmp_path, text, files=files)
    assert "setup.py:5: a wheel has one Python package: other is left out" in found.remaining
