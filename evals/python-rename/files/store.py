"""Users by number."""

USERS = {1: "ada", 2: "grace"}


def get_usr(number):
    return USERS[number]


def get_usr_agent():
    return "store/1.0"
