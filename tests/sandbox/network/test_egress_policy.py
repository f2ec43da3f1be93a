"""SB-28: names and addresses a sandbox may reach."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.core.addresses import is_public
from bowerbird.core.errors import ConfigError
from bowerbird.sandbox.network.egress_policy import EgressPolicy, normal_name


@pytest.mark.parametrize(
    ("allow", "host", "port", "admitted"),
    [
        pytest.param(["example.org"], "example.org", 443, True, id="host"),
        pytest.param(["example.org"], "example.org", 8080, False, id="other-port"),
        pytest.param(["example.org:8080"], "example.org", 8080, True, id="named-port"),
        pytest.param(["example.org:8080"], "example.org", 443, False, id="only-the-named-port"),
        pytest.param(["*.example.org"], "a.b.example.org", 80, True, id="below"),
        pytest.param(["*.example.org"], "example.org", 80, False, id="not-itself"),
        pytest.param(["*.example.org"], "evilexample.org", 80, False, id="not-a-suffix"),
        pytest.param(["*"], "anything.example", 443, True, id="any-public-host"),
        pytest.param(["*"], "8.8.8.8", 443, False, id="addresses-only-if-listed"),
        pytest.param(["8.8.8.8"], "8.8.8.8", 443, True, id="listed-address"),
        pytest.param(["[2606:4700::1]:443"], "2606:4700::1", 443, True, id="listed-ipv6"),
        pytest.param([], "example.org", 443, False, id="nothing-listed"),
    ],
)
def test_entries_admit_what_they_say(allow, host, port, admitted):
    assert EgressPolicy.parse(allow).admits(host, port) is admitted


def test_the_preset_stands_for_the_hosts_of_the_package_tools():
    policy = EgressPolicy.parse(["packages"], packages=["registry.test"])
    assert policy.admits("registry.test", 443) and not policy.admits("packages", 443)


@pytest.mark.parametrize("entry", ["", "http://x", "a b", "x:0", "x:70000", "*.*.x", "a\0b", "-:x"])
def test_an_entry_of_no_known_form_is_named(entry):
    with pytest.raises(ConfigError, match="allow"):
        EgressPolicy.parse([entry])


@pytest.mark.parametrize(
    ("given_name", "normal"),
    [
        ("Example.ORG.", "example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("[::1]", "::1"),
        ("127.0.0.1", "127.0.0.1"),
        ("2130706433", None),
        ("0x7f.1", None),
        ("127.1", None),
        ("a\0.example", None),
        ("a\nb", None),
        ("", None),
        (".", None),
        ("a..b", None),
        ("x" * 64 + ".example", None),
    ],
)
def test_names_have_one_form(given_name, normal):
    assert normal_name(given_name) == normal


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
        "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:8.8.8.8",
        "::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "192.0.2.1", "198.18.0.1",
    ],
)  # fmt: skip
def test_no_name_leads_to_an_address_that_is_not_public(address):
    assert not is_public(address)


def test_public_addresses_pass():
    for address in ("8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::808:808"):
        assert is_public(address), address


@given(inner=st.integers(0, 2**32 - 1))
def test_an_ipv4_address_in_ipv6_clothes_is_never_more_than_itself(inner):
    plain = ipaddress.IPv4Address(inner)
    for dressed in ((0x2002 << 112) | inner << 80, (0x64FF9B << 96) | inner):
        if not is_public(str(plain)):
            assert not is_public(str(ipaddress.IPv6Address(dressed)))
