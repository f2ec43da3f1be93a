"""The relay of credentials (PR-22): a run's token inside the sandbox, the real key outside.

Here: the HTTP endpoint of one run, counting tokens, its budget. Not here: how a sandbox's loopback leads to
it (`sandbox/run/doors`), which program gets one (`agent`).
"""
