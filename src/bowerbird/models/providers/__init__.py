"""The wires of the providers: requests out, streams in, errors made ours.

Must not be here: which model is used (`registry`), waiting and trying again (`wrappers`).
"""
