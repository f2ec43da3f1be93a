"""The network of a sandbox: closed, or a proxy with a list of hosts.

Must not be here: requests of the model's own tools (`bowerbird.tools.web`).
"""
