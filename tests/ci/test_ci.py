"""CI for kernel repositories: the files are valid, safe and pinned."""

import json
import re
import subprocess
import sys

import pytest

from builder import __version__
from builder.ci.workflow import SERVICES, BuilderAddress, caller, template
from builder.environment import compilers
from builder.toml import loads
from tests.ci.workflows import ACTION, KERNEL, steps, yaml
from tests.given.files import write
from tests.given.processes import output, tool
from tests.paths import ROOT

OPENS_A_CHANGE = {("torch-day.yml", "propose"): {"contents", "pull-requests"}}
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v[0-9.]+")


def needed(name):
    return tool(name) or pytest.skip(f"{name} is not installed")


HOME = BuilderAddress(host="github.com", repository="someone/builder", ref="0" * 40)


@pytest.fixture
def github_callers(tmp_path):
    """The workflow of a kernel, with a home of the builder that is known and without."""
    for name, home in (("known", HOME), ("unknown", None)):
        write(tmp_path / name, caller("github", home=home))
    return sorted(tmp_path.rglob("*.yml"))


def test_actionlint_has_nothing_to_say(github_callers):
    shellcheck = needed("shellcheck")
    output(needed("actionlint"), "-shellcheck", shellcheck, *WORKFLOWS, *github_callers)


def test_workflows_are_what_their_published_schemas_say(github_callers):
    check = needed("check-jsonschema")
    output(check, "--builtin-schema", "vendor.github-workflows", *WORKFLOWS, *github_callers)
    output(check, "--builtin-schema", "vendor.github-actions", ACTION)


def test_gitlab_pipelines_are_what_their_published_schema_says(tmp_path):
    check = needed("check-jsonschema")
    command = [sys.executable, "-m", "builder", "matrix", str(ROOT / "examples" / "relu"), "--format", "gitlab"]
    jobs = subprocess.run(command, capture_output=True, check=True, cwd=ROOT, text=True).stdout
    template_ = yaml.safe_load(template("gitlab-jobs.yml"))
    whole = {**template_, **json.loads(jobs)}
    (calling,) = caller("gitlab", home=HOME).values()
    files = {"jobs.yml": template("gitlab-jobs.yml"), "caller.yml": calling, "whole.yml": whole}
    for name, text in files.items():
        (tmp_path / name).write_text(text if isinstance(text, str) else yaml.safe_dump(text), encoding="utf-8")
    output(check, "--builtin-schema", "vendor.gitlab-ci", *(tmp_path / name for name in files))
    for name, job in json.loads(jobs).items():
        assert job["extends"] in template_, name


def test_an_empty_gitlab_pipeline_still_has_a_job():
    command = [sys.executable, "-m", "builder", "matrix", str(ROOT / "examples" / "relu"), "--format", "gitlab"]
    done = subprocess.run([*command, "--changed-since", "HEAD"], capture_output=True, text=True, cwd=ROOT, check=False)
    if not (ROOT / ".git").exists():
        pytest.skip("the sources were unpacked from an archive, which has no history to compare with")
    assert done.returncode == 0, done.stderr
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
        needed = {"attestations", "id-token"} if signs else OPENS_A_CHANGE.get((path.name, name), set())
        assert granted == needed
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


def test_the_inputs_of_the_workflow_and_what_they_are_by_default_are_in_the_docs():
    text = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| ([^|]*) \|", text, re.MULTILINE))
    for name, facts in KERNEL[True]["workflow_call"]["inputs"].items():
        default = str(facts["default"]).lower() if isinstance(facts["default"], bool) else str(facts["default"])
        shown = rows[name].strip("`")
        assert shown == (default or "none") or (name == "builder" and shown == "this version")


def test_only_runners_for_which_compilers_are_pinned_get_them():
    (build,) = (step for step in KERNEL["jobs"]["build"]["steps"] if step.get("name") == "Build")
    chosen = build["env"]["BUILDER_TOOLCHAIN"]
    assert chosen == "${{ !(runner.os == 'Linux' && runner.arch == 'X64') && 'system' || inputs.toolchain }}"
    assert "builder build" in build["run"]
    assert loads(compilers.TABLE.read_text(encoding="utf-8"))["runs-on"] == "x86_64-linux"


def test_a_caller_passes_only_inputs_that_the_workflow_has(github_callers):
    inputs = KERNEL[True]["workflow_call"]["inputs"]
    for path in github_callers:
        job = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]["kernel"]
        assert set(job["with"]) <= set(inputs)
        assert job["permissions"] == {"attestations": "write", "contents": "read", "id-token": "write"}


@pytest.mark.parametrize(
    ("home", "used"),
    [
        pytest.param(HOME, f"someone/builder/.github/workflows/kernel.yml@{'0' * 40}", id="a commit"),
        pytest.param(
            BuilderAddress(host="github.com", repository="someone/builder"),
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


def test_a_tag_of_a_kernel_has_its_wheels_signed(github_callers):
    for path in github_callers:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
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
    output(needed("zizmor"), "--offline", "--no-progress", ROOT / ".github", tmp_path / ".github")


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
    output(needed("shellcheck"), ROOT / path)
