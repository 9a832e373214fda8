"""A kernel for the CPU whose sources are also from elsewhere: a repository, an archive, a script."""

import shutil
import tarfile

from tests.given.files import sha256, write
from tests.given.kernels import PLAIN
from tests.given.repositories import commit

URL, ARCHIVE = "https://example.org/cut.git", "https://example.org/dl/fmt-1.0.tar.gz"
HEADER = """#pragma once
#include <stdexcept>
inline const char *cut_file() { return __FILE__; }
inline float cut_half(float x) {
  if (x != x) throw std::runtime_error(__FILE__);
  return x / 2;
}
"""
SOURCE = "const char *fmt_file() { return __FILE__; }\nfloat fmt_twice(float x) { return 2 * x; }\n"
SCRIPT = """import sys
factor = open("tools/factor.in").read().strip()
with open("made/scale.h", "w") as file:
    file.write("#pragma once\\nfloat scale(float x);\\nconst char *scale_file();\\n")
with open("made/scale.cpp", "w") as file:
    file.write(f'#include "scale.h"\\n// {sys.argv[1:]} {list({"a", "b", "c"})}\\n')
    file.write(f"const char *scale_file() {{ return __FILE__; }}\\nfloat scale(float x) {{ return {factor}f * x; }}\\n")
"""
KERNEL = """#include <cut/cut.h>
#include <cstdlib>
#include "scale.h"
float fmt_twice(float);
const char *fmt_file();
extern "C" void plain_scale(float *out, const float *values, float factor, long count) {
  if (std::getenv(cut_file()) || std::getenv(fmt_file()) || std::getenv(scale_file())) return;
  for (long i = 0; i < count; ++i) out[i] = cut_half(fmt_twice(scale(values[i])));
}
"""


def origins(root):
    """Make the repository and the archive below a folder; return the commit and the sha256."""
    rev = commit(root / "cut.git", {"include/cut/cut.h": HEADER})
    write(root, {"fmt-1.0/src/fmt.cpp": SOURCE})
    (root / "dl").mkdir()
    with tarfile.open(root / "dl/fmt-1.0.tar.gz", "w:gz") as archive:
        archive.add(root / "fmt-1.0", arcname="fmt-1.0")
    return rev, sha256(root / "dl/fmt-1.0.tar.gz")


def kernel(root, *, rev, digest, script=SCRIPT):
    """Write the kernel into a folder."""
    shutil.copytree(PLAIN, root)
    config = (root / "build.toml").read_text(encoding="utf-8")
    own = 'src = ["csrc/scale.cpp"]\n'
    assert own in config
    config = config.replace(
        own, f'{own[:-2]}, "fmt:src/fmt.cpp", "made/scale.cpp"]\ninclude = ["cut:include", "made"]\n'
    )
    config += f"""
[sources.cut]
git = "{URL}"
rev = "{rev}"
license = "MIT"

[sources.fmt]
url = "{ARCHIVE}"
sha256 = "{digest}"

[[generate]]
script = "tools/make.py"
args = ["--archs={{archs}}", "{{torch}}", "$(id) $HOME"]
inputs = ["tools/*.in"]
outputs = ["made/scale.cpp", "made/scale.h"]
"""
    files = {"build.toml": config, "csrc/scale.cpp": KERNEL, "tools/make.py": script, "tools/factor.in": "2.0\n"}
    return write(root, files)


def mirrors(root):
    """Return the variables that lead the URLs into the folder of `origins`."""
    return {"BUILDER_MIRRORS": f"{URL}=file://{root}/cut.git https://example.org/={root}/"}
