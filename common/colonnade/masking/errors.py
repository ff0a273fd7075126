"""Why a run of masked sums is refused."""

from colonnade.core.errors import BadMessage


class BadAnnouncement(BadMessage):
    """A key for a run of masked sums was not signed by its party, or serves no exchange."""

    code = "bad_announcement"


class BadPart(BadMessage):
    """A sealed part was altered on its way, or belongs to another party or run."""

    code = "bad_part"
