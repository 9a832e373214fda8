"""What installs a tool, on each family of distributions."""

import pytest

from builder import resources, toml
from builder.toolchain.tool import installing

TABLE = toml.loads((resources.DATA / "distributions.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("release", "command"),
    [
        pytest.param({"ID": "debian"}, "apt-get install g++ ccache", id="Debian"),
        pytest.param({"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, "apt-get install g++ ccache", id="like Ubuntu"),
        pytest.param({"ID": "fedora"}, "dnf install gcc-c++ ccache", id="Fedora"),
        pytest.param({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "dnf install gcc-c++ ccache", id="like RHEL"),
        pytest.param({"ID": "arch"}, "pacman -S gcc ccache", id="Arch"),
        pytest.param({"ID": "opensuse-leap", "ID_LIKE": "suse"}, "zypper install gcc-c++ ccache", id="openSUSE"),
        pytest.param({"ID": "alpine"}, "apk add g++ ccache", id="Alpine"),
        pytest.param({"ID": "macos"}, "xcode-select --install && brew install ccache", id="macOS"),
        pytest.param({"ID": "nobodys"}, "install g++ ccache", id="an unknown one"),
        pytest.param({}, "install g++ ccache", id="one that says nothing"),
    ],
)
def test_each_distribution_has_its_command(release, command):
    assert installing("g++", "ccache", of=release) == command


def test_a_tool_that_a_distribution_lacks_is_said():
    assert installing("rocm", of={"ID": "alpine"}) == "install rocm, which this distribution does not package"


def test_a_package_of_two_tools_is_named_once():
    assert installing("g++", "make", of={"ID": "macos"}) == "xcode-select --install"


@pytest.mark.parametrize("tool", TABLE["tool"])
def test_the_packages_of_a_tool_are_of_known_families(tool):
    assert TABLE["tool"][tool].keys() <= TABLE["family"].keys()
