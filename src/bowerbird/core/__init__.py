"""What every other room stands on: messages, events, usage, errors, ids, schemas, and a few small helpers.

Lives here: frozen values, the error hierarchy, JSON Schema made from signatures, the WebSocket's frames, and
helpers that know nothing of Bowerbird (files replaced whole, threads, lazy names). Must not be here:
settings, any import of ours from another package.
"""
