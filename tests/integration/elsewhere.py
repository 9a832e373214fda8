"""A kernel for the CPU whose sources are also from elsewhere: a repository, an archive, a script."""

import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
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
KERNEL = """#include "twice.h"
#include <cut/cut.h>
#include <cstdlib>
#include "scale.h"
float fmt_twice(float);
const char *fmt_file();
void twice(const float *input, float *output, int64_t n) {
  if (std::getenv(cut_file()) || std::getenv(fmt_file()) || std::getenv(scale_file())) return;
  for (int64_t i = 0; i < n; ++i) output[i] = cut_half(fmt_twice(scale(input[i])));
}
"""


def git(folder, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def origins(root):
    """Make the repository and the archive below a folder; return the commit and the sha256."""
    (root / "cut.git/include/cut").mkdir(parents=True)
    (root / "cut.git/include/cut/cut.h").write_text(HEADER, encoding="utf-8")
    git(root / "cut.git", "init", "--quiet")
    git(root / "cut.git", "add", ".")
    git(root / "cut.git", "commit", "--quiet", "-m", "a")
    (root / "fmt-1.0/src").mkdir(parents=True)
    (root / "fmt-1.0/src/fmt.cpp").write_text(SOURCE, encoding="utf-8")
    (root / "dl").mkdir()
    with tarfile.open(root / "dl/fmt-1.0.tar.gz", "w:gz") as archive:
        archive.add(root / "fmt-1.0", arcname="fmt-1.0")
    digest = hashlib.sha256((root / "dl/fmt-1.0.tar.gz").read_bytes()).hexdigest()
    return git(root / "cut.git", "rev-parse", "HEAD"), digest


def kernel(root, *, commit, sha256, script=SCRIPT):
    """Write the kernel into a folder."""
    shutil.copytree(ROOT / "tests/data/kernels/tiny", root)
    config = (root / "build.toml").read_text(encoding="utf-8")
    config = config.replace('"csrc/twice.h"]', '"csrc/twice.h", "fmt:src/fmt.cpp", "made/scale.cpp"]')
    config += f"""include = ["cut:include", "made"]

[sources.cut]
git = "{URL}"
rev = "{commit}"
license = "MIT"

[sources.fmt]
url = "{ARCHIVE}"
sha256 = "{sha256}"

[[generate]]
script = "tools/make.py"
args = ["--archs={{archs}}", "{{torch}}", "$(id) $HOME"]
inputs = ["tools/*.in"]
outputs = ["made/scale.cpp", "made/scale.h"]
"""
    (root / "tools").mkdir()
    files = {"build.toml": config, "csrc/twice.cpp": KERNEL, "tools/make.py": script, "tools/factor.in": "2.0\n"}
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    return root


def mirrors(root):
    """Return the variables that lead the URLs into the folder of `origins`."""
    return {"BUILDER_MIRRORS": f"{URL}=file://{root}/cut.git https://example.org/={root}/"}
