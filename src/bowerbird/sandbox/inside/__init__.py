"""What runs inside the sandbox or beside it in its own namespaces: standard library only.

Lives here: system calls that Python lacks (`kernel`) and the process that starts commands
inside (`zygote`). The directory is bound read-only into every sandbox and imported there as
the package `inside`, so nothing here may import the rest of Bowerbird or a third party.
"""
