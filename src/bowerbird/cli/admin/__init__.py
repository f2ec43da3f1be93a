"""Commands for whoever runs Bowerbird: settings, tokens, data, server.

Must not be here: sessions and turns.
"""
