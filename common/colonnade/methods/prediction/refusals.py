"""Why a party does not score: one class a cause, with a stable code."""

from colonnade.core.errors import EXIT_REFUSED, ColonnadeError


class ModelMismatch(ColonnadeError):
    """The releases of the job lead to another model than the one that is asked for."""

    code = "model_mismatch"
    exit_code = EXIT_REFUSED
    public = True


class RowsAnswered(ColonnadeError):
    """A row was scored by as many models as the grant allows, or the grant's rows are used up."""

    code = "rows_answered"
    exit_code = EXIT_REFUSED
    public = True


class RowsChanged(ColonnadeError):
    """A row was scored out of another version of a party's table, whose change would show."""

    code = "rows_changed"
    exit_code = EXIT_REFUSED
    public = True


class PartySetFinal(ColonnadeError):
    """A model's rows were scored by another set of parties, whose difference would show one."""

    code = "party_set_final"
    exit_code = EXIT_REFUSED
    public = True


class PartyMissing(ColonnadeError):
    """A party of the model does not score, and the request or the policy does not allow for it."""

    code = "party_missing"
    exit_code = EXIT_REFUSED
    public = True


class ScoreTooLarge(ColonnadeError):
    """A partial score could be so large that a sum wraps."""

    code = "score_too_large"
    exit_code = EXIT_REFUSED
    public = True
