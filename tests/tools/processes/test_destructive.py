"""TO-28: outright destructive forms are refused on what would run, not on words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.tools.processes.destructive import refusal


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /", "rm -rf /*", "rm -fr -- /", "rm -Rf /.", "rm -r -f /./", "rm -rf //",
        "rm --recursive --force /", "rm -rf '/'", "rm -r ~", "rm -rf ~/", "rm -rf $HOME", 'rm -rf "$HOME"',
        "rm -rf ${HOME}/*", "rm -rf /home", "rm -rf /root", "cd /tmp && rm -rf /*",
        "if true; then rm -rf /; fi", "x() { rm -rf /; }; x", "mkfs /dev/sda", "mkfs.ext4 /dev/sda",
        "/sbin/mkfs.xfs x", "dd if=/dev/zero of=/dev/sda bs=1M", "shutdown now", "reboot", "poweroff",
        "systemctl reboot", "init 0", "sudo ls", "/usr/bin/sudo ls", "su -c id", "doas id", "pkexec id",
        "cat x | sudo tee y", "echo $(sudo id)", "bash -c 'sudo ls'", "sh -c 'cd /; rm -rf /*'",
        "eval sudo x", "env sudo x", "env A=b -u X sudo x", "timeout 5 rm -rf /",
        "timeout -k 5 10 sh -c 'reboot'", "nice -n 5 sudo x", "nohup sudo x", "time sudo x",
        "xargs rm -rf / < x", "xargs -n 1 -I {} sudo {}", "find / -exec sudo x ;", "A=1 sudo x",
    ],
)  # fmt: skip
def test_it_is_refused_with_a_reason(command):
    assert refusal(command)


@pytest.mark.parametrize(
    "command",
    [
        'echo "$(date)"', "echo `date`", "echo sudo", 'echo "sudo rm -rf /"',
        "git commit -m 'reboot; rm -rf /'", "grep -r shutdown .", "timeout 60 grep -r sudo .",
        "find . -name sudo", "man sudo", "command -v sudo", "which reboot", "rm -rf build", "rm -rf ./",
        "rm -rf /tmp/x", "rm -rf ~/cache", "rm -f /", "rm file", "dd if=a of=b", "dd of=/dev/null",
        "cat <<'EOF'\nsudo rm -rf /\nEOF", "# sudo x", "echo $sudo", "python3 -c 'import shutil'", "ls ~",
        "", "(((", "init --help", "systemctl status",
    ],
)  # fmt: skip
def test_it_is_no_reason(command):
    assert refusal(command) is None


@given(st.text(alphabet=st.sampled_from("rm -rf/~$\"'`();|&\n*{}sudo "), max_size=40))
def test_any_line_is_judged_without_a_failure(command):
    refusal(command)
