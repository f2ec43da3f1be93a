"""A process to which the kernel denies user namespaces, for tests of what is left (acceptance 1).

    python -m support.denying PROGRAM ARGUMENT…

Installs a filter that answers EPERM to every way of making one, as hosts do that forbid them, and runs the
program; what it starts is denied them too.
"""

import errno
import os
import sys

CLONE_NEWUSER = 0x1000_0000


def deny_user_namespaces() -> None:
    """Refuse them to this process and all that it starts, for good."""
    import pyseccomp

    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    refused = pyseccomp.ERRNO(errno.EPERM)
    for call in ("unshare", "clone"):
        flag = pyseccomp.Arg(0, pyseccomp.MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER)
        rules.add_rule(refused, call, flag)
    rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    rules.load()


if __name__ == "__main__":
    deny_user_namespaces()
    os.execv(sys.argv[1], sys.argv[1:])
