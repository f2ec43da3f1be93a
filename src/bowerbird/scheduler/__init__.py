"""Scheduled tasks: what runs at which time, once, whatever dies (AS-29 … AS-40).

Lives here: when a task runs next, taking what is due, runs and their history. Must not be here: channels
(what a run says goes through the outbox), how a turn runs, REST.
"""
