"""A verb, run as the command line runs it."""

from colonnade.cli.parser import find, load


def handle(*words: object) -> int:
    """Parse ``words`` and run the verb that they name.

    Errors are raised, not printed: `colonnade.cli.main` is what turns them into lines.
    """
    found = find([*map(str, words)])
    module, parser = load(found)
    code: int = module.run(parser.parse_args(found.rest))
    return code
