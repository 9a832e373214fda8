import pytest

from builder.config import parse
from builder.errors import ConfigError
from builder.kernel import load

TEXT = '[general]\nname = "ab"\nversion = 1\nlicense = "MIT"\nbackends = ["cpu"]\n[torch]\n'


def test_a_kernel_knows_its_directory_config_and_schema(tmp_path):
    (tmp_path / "build.toml").write_text(TEXT)
    kernel = load(tmp_path)
    assert kernel.root == tmp_path
    assert kernel.config == parse(kernel.source)
    assert kernel.schema == 4


def test_an_error_names_the_file_as_the_user_would(tmp_path, monkeypatch):
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel/build.toml").write_text(TEXT + "x = 1\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"--> kernel/build\.toml:7:1 \(torch\.x\)"):
        load(type(tmp_path)("kernel"))
    monkeypatch.chdir("kernel")
    with pytest.raises(ConfigError, match=r"--> build\.toml:7:1"):
        load(type(tmp_path)())


def test_an_old_schema_takes_the_license_it_is_given(tmp_path):
    (tmp_path / "build.toml").write_text('[general]\nname = "ab"\nbackends = ["cpu"]\n')
    assert load(tmp_path, license="MIT").config.general.license == "MIT"
    with pytest.raises(ConfigError, match="no license"):
        load(tmp_path)


@pytest.mark.parametrize("directory", ["nowhere", "build.toml", "a\0b", "x" * 300])
def test_a_directory_that_is_none_is_an_error(tmp_path, directory):
    (tmp_path / "build.toml").write_text(TEXT)
    with pytest.raises(ConfigError, match="cannot read") as raised:
        load(tmp_path / directory)
    assert raised.value.exit_code == 2
    assert raised.value.problems[0].help == "name a kernel directory, which has a 'build.toml'"
