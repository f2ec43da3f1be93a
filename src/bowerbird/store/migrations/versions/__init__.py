"""One module per revision, named `NNNN_what.py`; applied in order, never changed later."""
