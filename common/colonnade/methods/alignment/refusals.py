"""Why an alignment is refused: one class a cause, with a stable code."""

from colonnade.core.errors import EXIT_REFUSED, BadInput, BadMessage, ColonnadeError


class RepeatedIds(BadInput):
    """A party's list names a person more than once."""

    code = "repeated_ids"
    sentence = (
        "it lists a person more than once; remove the rows there, or have every party's policy "
        'say repeated = "first" in [[align]] (a running party reads it again on SIGHUP)'
    )


class UnusableIds(BadInput):
    """A party's list cannot be used as it is."""

    code = "unusable_ids"


class HostilePoints(BadMessage):
    """A peer sent points that no honest party sends."""

    code = "hostile_points"


class BrokenChain(BadMessage):
    """A list was altered on its way, or was not signed by those who handled it."""

    code = "broken_chain"


class ListTooLong(BadMessage):
    """A list is longer than its owner may bring, or than its owner signed."""

    code = "list_too_long"


class CanaryMismatch(ColonnadeError):
    """Ids that two parties share were not given the same rows."""

    code = "canary_mismatch"
    exit_code = EXIT_REFUSED
    public = True
