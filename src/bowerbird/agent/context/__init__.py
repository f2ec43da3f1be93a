"""What of a conversation is sent to a model, and how it is made to fit.

Must not be here: calling the model (`turn_loop`).
"""
