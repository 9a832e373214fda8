"""Headers of CUDA's libraries that the environment of a build has only where the kernel names the library."""

import pytest

from builder import lint
from tests.render import small

SOURCE = '#include <cuda_fp16.h>\n#include "curand_kernel.h"\n#include <curand.h>\n  # include <cublas_v2.h>\n'


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        pytest.param({}, {(2, "curand"), (1, "nvrtc")}, id="classic"),
        pytest.param({"component": 'libraries = ["curand"]', "torch": 'libraries = ["nvrtc"]'}, set(), id="named"),
        pytest.param(
            {"torch": 'stable-abi = "2.11"'}, {(2, "curand"), (4, "cublas"), (1, "nvrtc")}, id="without torch's own"
        ),
        pytest.param({"framework": "tvm-ffi"}, {(2, "curand"), (4, "cublas"), (1, "nvrtc")}, id="tvm-ffi"),
    ],
)
def test_a_header_of_a_library_that_is_not_named_is_found_once_in_each_file(tmp_path, given, wanted):
    files = {"one.cpp": SOURCE, "csrc/more.cuh": "#include <nvrtc.h>\n"}
    small.kernel(tmp_path, backend="cuda", files=files, **given)
    problems = [each.problem for each in lint.inspect(tmp_path).found if each.problem.code == "B133"]
    remedies = {(line, f'write libraries = ["{name}"] in [torch] or in the component') for line, name in wanted}
    assert {(problem.span.line, problem.help) for problem in problems} == remedies
