"""Arguments that cannot be used, by the name of the parameter."""

from colonnade.core.errors import BadInput


class BadArgument(BadInput):
    """A parameter has a value that it cannot have.

    The library names the parameter; a command line names the option that sets it.
    """

    def __init__(self, parameter: str, problem: str) -> None:
        super().__init__(f"{parameter} {problem}")
        self.parameter, self.problem = parameter, problem
