"""The program normc. The package `normc` finds it here."""

import os


def program():
    """Returns the path of the program."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "normc")
