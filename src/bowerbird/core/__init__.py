"""Pure data that every other room uses: messages, events, usage, errors, ids, schemas.

Lives here: frozen values, the error hierarchy, JSON Schema made from signatures.
Must not be here: I/O, clocks other than `now_iso`, settings, any import of ours from
another package.
"""
