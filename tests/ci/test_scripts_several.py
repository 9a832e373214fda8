"""The scripts of the CI files for a repository of several kernels."""

import json
import shutil
import sys

import pytest

from builder.ci.workflow import caller, template
from tests.ci.test_plan_changes import commit, git
from tests.ci.test_scripts import PLAN, Runner
from tests.ci.workflows import KERNEL, script, yaml
from tests.cli.folders import write
from tests.given.files import program


@pytest.fixture
def runner(tmp_path):
    made = Runner(tmp_path)
    write(tmp_path / "kernels", "one", "cpu", "cuda")
    write(tmp_path / "kernels", "two")
    return made


def test_one_file_plans_every_kernel_of_a_repository(runner):
    done = runner.run(script("plan", "Plan"), DIRECTORY="kernels/*", **PLAN)
    assert done.returncode == 0, done.stderr
    outputs = runner.outputs
    assert (outputs["kernel"], outputs["any"]) == ("kernels", "true")
    include = json.loads(outputs["matrix"])["include"]
    assert {job["directories"] for job in include} == {"kernels/one", "kernels/two"}
    assert "2 kernels: 8 cells on 3 systems" in runner.read("GITHUB_STEP_SUMMARY")


def test_a_pull_request_plans_only_the_kernels_that_it_changes(runner):
    git(runner.root, "init", "-q")
    commit(runner.root)
    settings = {"DIRECTORY": "kernels/*", **PLAN, "CHANGED_SINCE": "HEAD"}
    assert runner.run(script("plan", "Plan"), **settings).returncode == 0
    assert runner.outputs["any"] == "false"
    (runner.root / "kernels/two/torch-ext/two/__init__.py").write_text("ANSWER = 42\n", encoding="utf-8")
    assert runner.run(script("plan", "Plan"), **settings).returncode == 0
    include = json.loads(runner.outputs["matrix"])["include"]
    assert {job["directories"] for job in include} == {"kernels/two"}


@pytest.mark.parametrize("step", ["Check", "Plan"])
def test_a_kernel_that_is_wrong_ends_the_plan(runner, step):
    (runner.root / "kernels/two/build.toml").write_text("[general]\nname = 1\n", encoding="utf-8")
    done = runner.run(script("plan", step), DIRECTORY="kernels/*", STRICT="false", **PLAN)
    assert done.returncode == 2
    assert "kernels/two/build.toml" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("directories", "passed"),
    [
        ("", ["kernels/*"]),
        ("kernels/one kernels/two", ["kernels/one", "kernels/two"]),
        ("$(touch x)", ["$(touch", "x)"]),
    ],
)
def test_a_job_builds_the_kernels_that_it_names(runner, directories, passed):
    program(runner.bin / "builder", "#!/bin/sh\nprintf '%s\\n' \"$@\" >arguments; echo '[]'")
    settings = {"NAME": "a", "VARIANTS": "one:torch-cpu", "TIME_LIMIT": "", "DIRECTORY": "kernels/*"}
    done = runner.run(script("build", "Build"), DIRECTORIES=directories, **settings)
    assert done.returncode == 0, done.stderr
    arguments = (runner.root / "arguments").read_text(encoding="utf-8").split("\n")[:-1]
    assert arguments[arguments.index("--") + 1 :] == passed
    assert not (runner.root / "x").exists()


@pytest.mark.torch
@pytest.mark.slow
def test_the_whole_github_pipeline_runs_for_several(runner):
    assert runner.run(script("plan", "Plan"), DIRECTORY="kernels/*", **PLAN).returncode == 0
    include = json.loads(runner.outputs["matrix"])["include"]
    for job in (each for each in include if each["backend"] == "cpu" and each["system"] == "x86_64-linux"):
        named = {"NAME": job["name"], "VARIANTS": job["variants"], "DIRECTORIES": job["directories"], "TIME_LIMIT": ""}
        done = runner.run(script("build", "Build"), DIRECTORY="kernels/*", **named)
        assert done.returncode == 0, done.stderr
    shutil.move(runner.root / "dist", runner.root / "collected")
    done = runner.run(script("collect", "Audit, state, lay out for the hub, index"), DIRECTORY="kernels/*")
    assert done.returncode == 0, done.stderr
    for name in ("one", "two"):
        assert (runner.root / "hub" / name / "build" / "torch-cpu").is_dir()
    assert {path.name for path in (runner.root / "site/simple").iterdir() if path.is_dir()} == {"one", "two"}


@pytest.mark.torch
@pytest.mark.slow
def test_the_whole_gitlab_pipeline_runs_for_several(runner):
    main = yaml.safe_load(caller("gitlab", home=None)[".gitlab-ci.yml"])
    jobs = yaml.safe_load(template("gitlab-jobs.yml"))
    offline = 'case "$*" in "-m pip install"*|"-m venv"*) exit 0;; esac\n'
    for name in ("python", "python3"):
        program(runner.bin / name, f'#!/bin/sh\n{offline}exec "{sys.executable}" "$@"')
    common = {"BUILDER": "unused", "BUILDER_DIRECTORY": "kernels/*", "BUILDER_SET": "release"}
    shell = ("sh", "-e")
    done = runner.run(main["plan"]["script"][0], shell=shell, **common)
    assert done.returncode == 0, done.stdout + done.stderr
    planned = json.loads((runner.root / "builder-jobs.yml").read_text(encoding="utf-8"))
    for name in ("one-cpu-x86_64-linux", "two-cpu-x86_64-linux"):
        variables = planned[name]["variables"]
        build = jobs[".builder-build"]["script"][0]
        done = runner.run(build, shell=shell, CI_JOB_NAME_SLUG=name.replace("_", "-"), **common, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
    done = runner.run(jobs["collect"]["script"][0], shell=shell, **common)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("one", "two"):
        assert (runner.root / "hub" / name / "build" / "torch-cpu").is_dir()


def test_the_jobs_of_several_kernels_name_their_folders():
    (step,) = (step for step in KERNEL["jobs"]["build"]["steps"] if step.get("name") == "Build")
    assert step["env"]["DIRECTORIES"] == "${{ matrix.directories }}"
