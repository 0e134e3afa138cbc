"""What can be wrong with what a user gives us."""


class BadInput(ValueError):  # noqa: N818 (it names what happened, as users read it)
    """A file, a value or a setting cannot be used. The message names it, says what is wrong and what to do.

    The command line prints the message and exits with code 2; there is no traceback to read.
    """
