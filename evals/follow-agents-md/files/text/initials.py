"""Initials of names.

Owner: text team
"""


def initials(name):
    return "".join(word[0] for word in name.split()).upper()
