"""Every script of the CI files, run as the service runs it."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from builder import __version__
from builder.ci.workflow import caller, template
from builder.toolchain.tool import installing
from tests.ci.workflows import BUILD_ACTION, KERNEL, script, steps, yaml
from tests.given.files import program
from tests.given.repositories import commit
from tests.paths import ROOT

COMPILER = "Install the compiler for aarch64"
NOARCH = ROOT / "examples" / "silu-and-mul"


class Runner:
    """A machine of the service: a folder, the files that steps write to, and the tools they find."""

    def __init__(self, root):
        self.root = root
        self.files = {name: root / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV")}
        self.files["GITHUB_PATH"] = root / "github_path"
        for path in self.files.values():
            path.touch()
        self.bin = root / "bin"
        self.bin.mkdir()
        program(self.bin / "python", f'#!/bin/sh\nexec "{sys.executable}" "$@"')
        program(self.bin / "builder", f'#!/bin/sh\nexec "{sys.executable}" -m builder "$@"')

    def run(self, text, *, shell=("bash", "--noprofile", "--norc", "-eo", "pipefail"), cwd=None, **env):
        whole = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "CI"))},
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "GITHUB_SERVER_URL": "https://example.org",
            "GITHUB_REPOSITORY": "someone/kernel",
            "GITHUB_WORKFLOW_REF": "someone/kernel/.github/workflows/kernel.yml@refs/tags/v1",
            "GITHUB_RUN_ID": "7",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_SHA": "0" * 40,
            "BUILDER_STORE": os.environ.get("BUILDER_STORE", str(self.root / "store")),
            **{name: str(path) for name, path in self.files.items()},
            **{name: str(value) for name, value in env.items()},
        }
        path = self.root / "step.sh"
        path.write_text(text, encoding="utf-8")
        return subprocess.run(
            [*shell, str(path)], env=whole, cwd=cwd or self.root, capture_output=True, text=True, check=False
        )

    def read(self, name):
        return self.files[name].read_text(encoding="utf-8")

    @property
    def outputs(self):
        return dict(line.split("=", 1) for line in self.read("GITHUB_OUTPUT").splitlines())


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


PLAN = {"MATRIX_SET": "release", "SHARDS": "0", "CHANGED_SINCE": "", "RUNNERS": ""}


def test_the_plan_step_writes_a_matrix_and_a_summary(runner):
    done = runner.run(script("plan", "Plan"), DIRECTORY=ROOT / "examples" / "relu", **PLAN)
    assert done.returncode == 0, done.stderr
    outputs = runner.outputs
    assert outputs["any"] == "true"
    assert outputs["kernel"] == "relu"
    assert re.fullmatch(r"[0-9a-f]{16}", outputs["digest"])
    assert len(json.loads(outputs["matrix"])["include"]) == 12
    assert "torch 2.13, cpu, x86_64-linux: built" in runner.read("GITHUB_STEP_SUMMARY")
    assert "<h2>relu: 31 cells on 3 systems</h2>" in (runner.root / "plan.html").read_text(encoding="utf-8")


def test_the_summary_of_a_run_links_the_page_of_the_plan(runner):
    url = "https://example.org/runs/1/artifacts/2"
    done = runner.run(script("plan", "Link the page of the plan"), URL=url)
    assert done.returncode == 0, done.stderr
    assert runner.read("GITHUB_STEP_SUMMARY") == f"[The plan as a page]({url})\n"


def test_the_plan_step_takes_every_input(runner):
    settings = {**PLAN, "SHARDS": "20", "RUNNERS": "x86_64-linux=mine aarch64-linux=arm", "MATRIX_SET": "all"}
    done = runner.run(script("plan", "Plan"), DIRECTORY=ROOT / "examples" / "relu", **settings)
    assert done.returncode == 0, done.stderr
    include = json.loads(runner.outputs["matrix"])["include"]
    assert len(include) == 20
    assert {job["runner"] for job in include} == {"mine", "arm", "macos-15"}


def test_a_plan_with_nothing_to_build_ends_the_pipeline_and_does_not_fail_it(runner):
    kernel = runner.root / "kernel"
    shutil.copytree(NOARCH, kernel)
    commit(kernel)
    done = runner.run(script("plan", "Plan"), DIRECTORY=kernel, **{**PLAN, "CHANGED_SINCE": "main"})
    assert done.returncode == 0, done.stderr
    assert runner.outputs["any"] == "false"
    assert KERNEL["jobs"]["build"]["if"] == "needs.plan.outputs.any == 'true'"


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("CHANGED_SINCE", "nowhere", 2),
        ("CHANGED_SINCE", "$(touch injected)", 2),
        ("CHANGED_SINCE", "x\n::set-env name=a::b", 2),
        ("MATRIX_SET", "`touch injected`", 2),
        ("SHARDS", "1; touch injected", 2),
        ("RUNNERS", "x86_64-linux=$(touch injected)", 2),
        ("DIRECTORY", "-v; touch injected", 2),
    ],
)
def test_an_input_is_never_run_and_never_a_command(runner, name, value, code):
    settings = {"DIRECTORY": ROOT / "examples" / "relu", **PLAN, name: value}
    done = runner.run(script("plan", "Plan"), **settings)
    assert done.returncode == code
    assert not (runner.root / "injected").exists()
    assert "matrix" not in runner.outputs
    said = done.stdout + done.stderr + runner.read("GITHUB_STEP_SUMMARY")
    assert not [line for line in said.splitlines() if line.lstrip().startswith("::")]


def test_the_check_step_annotates_lines_of_the_config(runner):
    kernel = runner.root / "kernel"
    shutil.copytree(ROOT / "examples" / "relu", kernel)
    text = (kernel / "build.toml").read_text(encoding="utf-8")
    (kernel / "build.toml").write_text(text.replace('backend = "cpu"', 'backend = "cpus"'), encoding="utf-8")
    done = runner.run(script("plan", "Check"), DIRECTORY="kernel", STRICT="false")
    assert done.returncode == 2
    assert re.search(r"^::error title=builder B\d+,file=kernel/build.toml,line=\d+", done.stdout, re.MULTILINE)
    assert runner.run(script("plan", "Check"), DIRECTORY=ROOT / "examples" / "relu", STRICT="false").returncode == 0


def test_the_container_step_finds_python_and_toolkits(runner):
    text = script("build", "Find Python and the toolkit of the container")
    here = runner.root / "image"
    for folder in ("opt/python/cp311-cp311/bin", "opt/python/cp310-cp310/bin", "usr/local/cuda", "opt/rocm"):
        (here / folder).mkdir(parents=True)
    for version in ("311", "310"):
        path = here / f"opt/python/cp{version}-cp{version}/bin/python"
        path.touch()
        path.chmod(0o755)
    moved = re.sub(r"(?<![\w.])/(opt|usr)/", f"{here}/\\1/", text)
    assert runner.run(moved).returncode == 0
    assert runner.read("GITHUB_PATH") == f"{here}/opt/python/cp311-cp311/bin\n"
    assert runner.read("GITHUB_ENV") == f"CUDA_HOME={here}/usr/local/cuda\nROCM_PATH={here}/opt/rocm\n"


def test_a_container_without_python_says_so(runner):
    text = script("build", "Find Python and the toolkit of the container").replace("/opt/python", "/nowhere")
    done = runner.run(text)
    assert done.returncode == 1
    assert "::error::the container has no Python" in done.stdout


def test_a_runner_of_x86_gets_the_compiler_for_aarch64_that_doctor_names(runner):
    step = next(one for where, one in steps(KERNEL) if (where, one.get("name")) == ("build", COMPILER))
    assert step["if"] == "matrix.container == '' && matrix.system == 'aarch64-linux' && runner.arch == 'X64'"
    program(runner.bin / "sudo", '#!/bin/sh\necho "$@" >>arguments')
    assert runner.run(script("build", COMPILER)).returncode == 0
    *_, package = installing("g++-aarch64-linux", of={"ID": "ubuntu"}).split()
    *_, installed = (runner.root / "arguments").read_text(encoding="utf-8").splitlines()
    assert installed == f"apt-get install --yes --quiet {package}"


REPORT = '[{"variant": "torch-cpu", "status": "failed", "reason": "no compiler", "seconds": 1}]'


@pytest.mark.parametrize("document", [KERNEL, BUILD_ACTION], ids=["job", "action"])
def test_the_build_step_passes_on_what_the_build_says_and_how_it_ended(runner, document):
    program(runner.bin / "builder", f"#!/bin/sh\nprintf '%s\\n' \"$@\" >arguments; echo '{REPORT}'; exit 4")
    job = "action" if "runs" in document else "build"
    done = runner.run(
        script(job, "Build", document),
        DIRECTORY="-odd name",
        NAME="cpu-x86_64-linux",
        OUTPUT="dist",
        VARIANTS="torch-cpu torch-cuda",
        TIME_LIMIT="",
        RUNNER_TEMP=runner.root,
    )
    assert done.returncode == 4, done.stderr
    arguments = (runner.root / "arguments").read_text(encoding="utf-8").split("\n")[:-1]
    variants = ["--variant", "torch-cpu", "--variant", "torch-cuda"]
    assert arguments == ["build", "--output", "dist", "--json", *variants, "--", "-odd name"]
    assert "| `torch-cpu` |" in runner.read("GITHUB_STEP_SUMMARY")
    assert "**failed**: no compiler" in runner.read("GITHUB_STEP_SUMMARY")


def test_the_build_step_passes_a_time_limit_on(runner):
    program(runner.bin / "builder", "#!/bin/sh\nprintf '%s\\n' \"$@\" >arguments; echo '[]'")
    done = runner.run(script("build", "Build"), DIRECTORY=".", NAME="a", VARIANTS="torch-cpu", TIME_LIMIT="5h30m")
    assert done.returncode == 0, done.stderr
    assert "--time-limit\n5h30m\n" in (runner.root / "arguments").read_text(encoding="utf-8")


@pytest.mark.network
def test_the_install_step_installs_this_project(runner):
    subprocess.run([sys.executable, "-m", "venv", str(runner.root / "venv")], check=True)
    program(runner.bin / "python", f'#!/bin/sh\nexec "{runner.root}/venv/bin/python" "$@"')
    done = runner.run(script("build", "Install builder"), BUILDER=ROOT, PYTHONPATH="")
    assert done.returncode == 0, done.stderr
    version = subprocess.run([runner.root / "venv" / "bin" / "builder", "--version"], capture_output=True, check=True)
    assert __version__ in version.stdout.decode()
    printed = runner.run("python -m builder.ci gitlab-jobs", PYTHONPATH="")
    assert printed.stdout == template("gitlab-jobs.yml")


@pytest.mark.torch
@pytest.mark.slow
def test_the_whole_github_pipeline_runs(runner):
    done = runner.run(script("plan", "Plan"), DIRECTORY=NOARCH, **PLAN)
    assert done.returncode == 0, done.stderr
    job = next(one for one in json.loads(runner.outputs["matrix"])["include"] if one["backend"] == "cpu")
    named = {"DIRECTORY": NOARCH, "NAME": job["name"], "VARIANTS": job["variants"], "TIME_LIMIT": ""}
    done = runner.run(script("build", "Build"), **named)
    assert done.returncode == 0, done.stderr
    stored = runner.run(f'builder matrix --backend cpu --skip-stored -- "{NOARCH}"')
    assert stored.stdout.startswith("silu-and-mul: 0 cells\n"), stored.stdout + stored.stderr
    assert "3 in the store" in stored.stdout
    shutil.move(runner.root / "dist", runner.root / "collected")
    done = runner.run(script("collect", "Audit, state, lay out for the hub, index"), DIRECTORY=NOARCH)
    assert done.returncode == 0, done.stderr
    assert (runner.root / "hub" / "build" / "torch-cpu").is_dir()
    (stated,) = (runner.root / "collected").glob("*.intoto.json")
    details = json.loads(stated.read_text(encoding="utf-8"))["predicate"]["runDetails"]
    assert details["builder"]["id"] == "https://example.org/someone/kernel/.github/workflows/kernel.yml@refs/tags/v1"
    assert details["metadata"]["invocationId"] == "https://example.org/someone/kernel/actions/runs/7/attempts/1"
    assert any((runner.root / "site").rglob("index.html"))
    sums = (runner.root / "collected" / "SHA256SUMS").read_text(encoding="utf-8")
    assert sums.split()[0] in runner.read("GITHUB_STEP_SUMMARY")


@pytest.mark.torch
@pytest.mark.slow
def test_the_whole_gitlab_pipeline_runs(runner):
    main = yaml.safe_load(caller("gitlab", home=None)[".gitlab-ci.yml"])
    jobs = yaml.safe_load(template("gitlab-jobs.yml"))
    program(runner.bin / "pip", "#!/bin/sh\nexit 0")
    # The installation has a test of its own; here, builder is what is being tested.
    offline = 'case "$*" in "-m pip install"*|"-m venv"*) exit 0;; esac\n'
    for name in ("python", "python3"):
        program(runner.bin / name, f'#!/bin/sh\n{offline}exec "{sys.executable}" "$@"')
    (runner.root / "kernel").mkdir()
    shutil.copytree(NOARCH, runner.root / "kernel", dirs_exist_ok=True)
    common = {"BUILDER": "unused", "BUILDER_DIRECTORY": "kernel", "BUILDER_SET": "release"}
    shell = ("sh", "-e")
    done = runner.run(main["plan"]["script"][0], shell=shell, **common)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (runner.root / "builder-template.yml").read_text(encoding="utf-8") == template("gitlab-jobs.yml")
    assert "<!DOCTYPE html>" in (runner.root / "plan.html").read_text(encoding="utf-8")
    planned = json.loads((runner.root / "builder-jobs.yml").read_text(encoding="utf-8"))
    variables = planned["cpu-x86_64-linux"]["variables"]
    build = jobs[".builder-build"]["script"][0]
    done = runner.run(build, shell=shell, CI_JOB_NAME_SLUG="cpu-x86-64-linux", **common, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| `torch-cpu` |" in done.stdout
    done = runner.run(jobs["collect"]["script"][0], shell=shell, **common)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (runner.root / "hub" / "build" / "torch-cpu").is_dir()


def test_every_script_of_the_kernel_workflow_is_run_by_a_test():
    named = {(where, step["name"]) for where, step in steps(KERNEL) if "run" in step}
    assert named == {
        ("plan", "Install builder"),
        ("plan", "Check"),
        ("plan", "Plan"),
        ("plan", "Link the page of the plan"),
        ("build", "Find Python and the toolkit of the container"),
        ("build", COMPILER),
        ("build", "Install builder"),
        ("build", "Build"),
        ("collect", "Install builder"),
        ("collect", "Audit, state, lay out for the hub, index"),
    }
    installs = {script(job, "Install builder") for job in ("plan", "build", "collect")}
    assert len(installs) == 1
