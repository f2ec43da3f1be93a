"""Chat channels: what people write there becomes turns, and what turns owe them arrives there.

Lives here: the contract of a channel, the router that every incoming message passes, who may write, review
from chat; each channel in a folder of its own. Must not be here: how a turn runs, REST, settings files.
"""
