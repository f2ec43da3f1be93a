"""SB-28: the preset `packages` is what this host's package tools say, at run time."""

import shutil
import subprocess

import pytest

from bowerbird.sandbox.network.egress_policy import EgressPolicy
from bowerbird.sandbox.network.registries import host_of, package_hosts, pip_config_urls


@pytest.fixture
def own_configuration(tmp_path, monkeypatch):
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://index.test/simple\nextra-index-url =\n"
        "    https://more.test:8443/simple\n    file:///srv/wheels\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("npm_config_registry", "https://npm.test/")


@pytest.mark.skipif(shutil.which("pip") is None, reason="pip is not installed here")
def test_configured_indexes_are_the_hosts(own_configuration):
    hosts = package_hosts()
    assert {"index.test", "more.test:8443"} <= set(hosts)
    if shutil.which("npm"):
        assert "npm.test" in hosts
    policy = EgressPolicy.parse(["packages"], hosts)
    assert policy.admits("index.test", 443) and policy.admits("more.test", 8443)
    assert not policy.admits("more.test", 443)


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed here")
def test_npm_s_own_default_is_asked_of_npm(monkeypatch):
    said = subprocess.run(
        ["npm", "config", "get", "registry"], capture_output=True, text=True, check=True, cwd="/"
    ).stdout
    assert host_of(said.strip()) in package_hosts()


def test_a_project_cannot_widen_what_is_reached(tmp_path, monkeypatch, own_configuration):
    (tmp_path / ".npmrc").write_text("registry=https://evil.test/\n")
    monkeypatch.chdir(tmp_path)
    assert "evil.test" not in package_hosts()


def test_tools_that_are_missing_add_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert package_hosts() == ()


@pytest.mark.parametrize(
    ("lines", "has_index", "urls"),
    [
        pytest.param([], False, [], id="nothing"),
        pytest.param(["global.index-url='https://a.test/s'"], True, ["https://a.test/s"], id="index"),
        pytest.param([":env:.index-url='https://b.test'"], True, ["https://b.test"], id="environment"),
        pytest.param(
            ["global.extra-index-url='https://c.test https://d.test'"], False,
            ["https://c.test", "https://d.test"], id="further",
        ),
        pytest.param(["global.cert='/etc/ssl/x'", "install.find-links='/srv'"], False, [], id="no-url"),
    ],
)  # fmt: skip
def test_pip_s_configuration_is_read(lines, has_index, urls):
    assert pip_config_urls(lines) == (has_index, urls)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://A.test/simple", "a.test"), ("http://a.test:80/", "a.test"),
        ("https://a.test:8443", "a.test:8443"),
        ("file:///srv", None), ("ftp://a.test", None), ("https://", None), ("https://a.test:x/", None),
    ],
)  # fmt: skip
def test_the_host_of_a_url(url, host):
    assert host_of(url) == host
