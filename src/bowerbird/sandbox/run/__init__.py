"""One command in a sandbox: profile, start, limits, output, record.

Must not be here: which branch it works on (`branch_sandbox`), how the branch becomes files (`projection`).
"""
