"""CI for kernel repositories: the files are valid, safe and pinned, and every script in them runs."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from builder import __version__
from builder.ci.origin import Home
from builder.ci.pipeline import SERVICES, caller, template
from tests.paths import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = ROOT / ".github" / "actions" / "build" / "action.yml"
BUILD_ACTION = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
KERNEL = yaml.safe_load((ROOT / ".github" / "workflows" / "kernel.yml").read_text(encoding="utf-8"))
NOARCH = ROOT / "examples" / "silu-and-mul"
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v[0-9.]+")


def steps(document):
    """Yield every step of a workflow or an action, with a name for messages."""
    if "runs" in document:
        yield from (("action", step) for step in document["runs"]["steps"])
    for name, job in document.get("jobs", {}).items():
        yield from ((name, step) for step in job.get("steps", ()))


def script(job, name, document=KERNEL):
    return next(step["run"] for where, step in steps(document) if where == job and step.get("name") == name)


def tool(name):
    """Return a tool of the test environment, or of PATH."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    return found or pytest.skip(f"{name} is not installed")


def lint(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


HOME = Home(host="github.com", repository="someone/builder", ref="0" * 40)


@pytest.fixture(params=[HOME, None], ids=["known home", "unknown home"])
def github_caller(tmp_path, request):
    (path, text), *_ = caller("github", home=request.param).items()
    target = tmp_path / path
    target.parent.mkdir(parents=True)
    target.write_text(text, encoding="utf-8")
    return target


def test_actionlint_has_nothing_to_say(github_caller):
    shellcheck = tool("shellcheck")
    lint(tool("actionlint"), "-shellcheck", shellcheck, *WORKFLOWS, github_caller)


def test_workflows_are_what_their_published_schemas_say(github_caller):
    check = tool("check-jsonschema")
    lint(check, "--builtin-schema", "vendor.github-workflows", *WORKFLOWS, github_caller)
    lint(check, "--builtin-schema", "vendor.github-actions", ACTION)


def test_gitlab_pipelines_are_what_their_published_schema_says(tmp_path):
    check = tool("check-jsonschema")
    command = [sys.executable, "-m", "builder", "matrix", str(ROOT / "examples" / "relu"), "--format", "gitlab"]
    jobs = subprocess.run(command, capture_output=True, check=True, cwd=ROOT, text=True).stdout
    template_ = yaml.safe_load(template("gitlab-jobs.yml"))
    whole = {**template_, **json.loads(jobs)}
    (calling,) = caller("gitlab", home=HOME).values()
    files = {"jobs.yml": template("gitlab-jobs.yml"), "caller.yml": calling, "whole.yml": whole}
    for name, text in files.items():
        (tmp_path / name).write_text(text if isinstance(text, str) else yaml.safe_dump(text), encoding="utf-8")
    lint(check, "--builtin-schema", "vendor.gitlab-ci", *(tmp_path / name for name in files))
    for name, job in json.loads(jobs).items():
        assert job["extends"] in template_, name


def test_an_empty_gitlab_pipeline_still_has_a_job():
    command = [sys.executable, "-m", "builder", "matrix", str(ROOT / "examples" / "relu"), "--format", "gitlab"]
    done = subprocess.run([*command, "--changed-since", "HEAD"], capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode != 0:
        pytest.skip(done.stderr)  # an unpacked source has no history
    assert json.loads(done.stdout)


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=lambda path: path.parent.name + "/" + path.name)
def test_every_action_is_pinned_by_hash(path):
    used = re.findall(r"uses: (?!\./)(.+)", path.read_text(encoding="utf-8"))  # what is here is of this commit
    assert all(PINNED.fullmatch(one) for one in used), used


def test_an_action_is_pinned_to_the_same_commit_everywhere():
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    pins = {}
    for name, rest in re.findall(r"uses: (actions/[\w-]+)[\w/-]*@(.+)", text):
        assert pins.setdefault(name, rest) == rest


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=lambda path: path.parent.name + "/" + path.name)
def test_no_script_has_an_expression_in_it(path):
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    for where, step in steps(document):
        assert "${{" not in step.get("run", ""), f"{where}: {step.get('name')}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_grants_no_more_than_it_needs(path):
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert document["permissions"] in ({}, {"contents": "read"})
    for name, job in document["jobs"].items():
        granted = {key for key, value in job.get("permissions", {}).items() if value == "write"}
        signs = name == "attest" or job.get("with", {}).get("attest", False)
        assert granted == ({"attestations", "id-token"} if signs else set())
        for step in job.get("steps", ()):
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_the_reusable_workflow_installs_this_version():
    inputs = KERNEL[True]["workflow_call"]["inputs"]  # YAML 1.1 reads the key `on` as true
    assert inputs["builder"]["default"] == f"kernel-wheel-builder=={__version__}"


@pytest.mark.parametrize("home", [HOME, None], ids=["known home", "unknown home"])
@pytest.mark.parametrize("service", SERVICES)
def test_a_caller_is_one_file_with_every_placeholder_filled(service, home):
    ((path, text),) = caller(service, home=home).items()
    assert path in {".github/workflows/kernel.yml", ".gitlab-ci.yml"}
    assert re.search(r"@[A-Z]+@", text) is None
    assert (f"kernel-wheel-builder=={__version__}" if home is None else HOME.requirement) in text
    assert yaml.safe_load(text)


def test_a_caller_passes_only_inputs_that_the_workflow_has(github_caller):
    job = yaml.safe_load(github_caller.read_text(encoding="utf-8"))["jobs"]["kernel"]
    inputs = KERNEL[True]["workflow_call"]["inputs"]
    assert set(job["with"]) <= set(inputs)
    assert job["permissions"] == {"attestations": "write", "contents": "read", "id-token": "write"}


@pytest.mark.parametrize(
    ("home", "used"),
    [
        pytest.param(HOME, f"someone/builder/.github/workflows/kernel.yml@{'0' * 40}", id="a commit"),
        pytest.param(
            Home(host="github.com", repository="someone/builder"),
            f"someone/builder/.github/workflows/kernel.yml@v{__version__}",
            id="this version's tag",
        ),
        pytest.param(None, f"OWNER/REPOSITORY/.github/workflows/kernel.yml@v{__version__}", id="unknown"),
    ],
)
def test_a_caller_calls_the_workflow_of_the_builder_that_wrote_it(home, used):
    text = caller("github", home=home)[".github/workflows/kernel.yml"]
    assert yaml.safe_load(text)["jobs"]["kernel"]["uses"] == used
    assert ("# EDIT: put the repository of builder in place of OWNER/REPOSITORY" in text) == (home is None)


def test_a_tag_of_a_kernel_has_its_wheels_signed(github_caller):
    document = yaml.safe_load(github_caller.read_text(encoding="utf-8"))
    assert document[True]["push"]["tags"] == ["v*"]
    assert document["jobs"]["kernel"]["with"]["attest"] == "${{ startsWith(github.ref, 'refs/tags/') }}"


def test_what_is_signed_is_the_wheels_and_what_is_stated_of_them():
    collected, signing = KERNEL["jobs"]["collect"]["steps"], KERNEL["jobs"]["attest"]["steps"]
    (stating,) = (step["run"] for step in collected if "builder attest" in step.get("run", ""))
    assert "--commit" in stating
    (signed,) = (step for step in signing if step["uses"].startswith("actions/attest-build-provenance@"))
    assert signed["with"]["subject-path"].split() == ["collected/*.whl", "collected/*.intoto.json"]


def test_a_release_of_this_project_is_signed():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["attest"]["needs"] == "package"
    assert jobs["attest"]["steps"][-1]["uses"].startswith("actions/attest-build-provenance@")
    kernels = jobs["kernels"]
    assert kernels["with"]["attest"] is True
    assert set(kernels["with"]) <= set(KERNEL[True]["workflow_call"]["inputs"])
    examples = {path.parent.name for path in (ROOT / "examples").glob("*/build.toml")}
    assert set(kernels["strategy"]["matrix"]["kernel"]) == examples


def test_zizmor_finds_nothing_to_say(tmp_path):
    (path, text), *_ = caller("github", home=HOME).items()
    target = tmp_path / path
    target.parent.mkdir(parents=True)
    target.write_text(text, encoding="utf-8")
    lint(tool("zizmor"), "--offline", "--no-progress", ROOT / ".github", tmp_path / ".github")


# Every script, run as the service runs it.


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
        self.install("python", f'exec "{sys.executable}" "$@"')
        self.install("builder", f'exec "{sys.executable}" -m builder "$@"')

    def install(self, name, text):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

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
    assert "torch 2.12, cpu, x86_64-linux: built" in runner.read("GITHUB_STEP_SUMMARY")


def test_the_plan_step_takes_every_input(runner):
    settings = {**PLAN, "SHARDS": "20", "RUNNERS": "x86_64-linux=mine aarch64-linux=arm", "MATRIX_SET": "all"}
    done = runner.run(script("plan", "Plan"), DIRECTORY=ROOT / "examples" / "relu", **settings)
    assert done.returncode == 0, done.stderr
    include = json.loads(runner.outputs["matrix"])["include"]
    assert len(include) == 20
    assert {job["runner"] for job in include} == {"mine", "arm", "macos-15"}


def commit(root):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ = {**clean, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "all")):
        subprocess.run(["git", "-C", str(root), *who, *arguments], check=True, env=environ)


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


REPORT = '[{"variant": "torch-cpu", "status": "failed", "reason": "no compiler", "seconds": 1}]'


@pytest.mark.parametrize("document", [KERNEL, BUILD_ACTION], ids=["job", "action"])
def test_the_build_step_passes_on_what_the_build_says_and_how_it_ended(runner, document):
    runner.install("builder", f"printf '%s\\n' \"$@\" >arguments; echo '{REPORT}'; exit 4")
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
    runner.install("builder", "printf '%s\\n' \"$@\" >arguments; echo '[]'")
    done = runner.run(script("build", "Build"), DIRECTORY=".", NAME="a", VARIANTS="torch-cpu", TIME_LIMIT="5h30m")
    assert done.returncode == 0, done.stderr
    assert "--time-limit\n5h30m\n" in (runner.root / "arguments").read_text(encoding="utf-8")


@pytest.mark.network
def test_the_install_step_installs_this_project(runner):
    subprocess.run([sys.executable, "-m", "venv", str(runner.root / "venv")], check=True)
    runner.install("python", f'exec "{runner.root}/venv/bin/python" "$@"')
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
    runner.install("pip", "exit 0")
    # The installation has a test of its own; here, builder is what is being tested.
    offline = 'case "$*" in "-m pip install"*|"-m venv"*) exit 0;; esac\n'
    for name in ("python", "python3"):
        runner.install(name, f'{offline}exec "{sys.executable}" "$@"')
    (runner.root / "kernel").mkdir()
    shutil.copytree(NOARCH, runner.root / "kernel", dirs_exist_ok=True)
    common = {"BUILDER": "unused", "BUILDER_DIRECTORY": "kernel", "BUILDER_SET": "release"}
    shell = ("sh", "-e")
    done = runner.run(main["plan"]["script"][0], shell=shell, **common)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (runner.root / "builder-template.yml").read_text(encoding="utf-8") == template("gitlab-jobs.yml")
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
        ("build", "Find Python and the toolkit of the container"),
        ("build", "Install builder"),
        ("build", "Build"),
        ("collect", "Install builder"),
        ("collect", "Audit, state, lay out for the hub, index"),
    }
    installs = {script(job, "Install builder") for job in ("plan", "build", "collect")}
    assert len(installs) == 1


def test_this_projects_own_workflow_runs_what_contributors_run():
    document = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    scripts = [step["run"] for _, step in steps(document) if "run" in step]
    assert any(".ci/run" in text for text in scripts)
    targets = {target for text in scripts for target in re.findall(r"make (?:\S+=\S+ )?(\S+)", text)}
    known = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert targets <= known


BARE = [f".ci/bare/{path.name}" for path in sorted((ROOT / ".ci/bare").iterdir())]


@pytest.mark.parametrize("path", [".ci/run", *BARE, "builder/nix/host/here"])
def test_the_scripts_of_this_project_are_shell_without_a_finding(path):
    lint(tool("shellcheck"), ROOT / path)
