"""What a sealed job promises, in words: the same for plans, policies, approvals and reports.

The mathematics behind the words, and what is assumed, is in `methods.sealed.charges`.
"""

from colonnade.methods.sealed.kinds import GRAM, MEANS, OPENINGS, REPLIES, SEALED, WIDE, parsed

# The three kinds of promise; no word of one is used for another.
EVERYBODY = "everybody"
PEERS = "peers-follow-the-protocol"
ENCRYPTED = "encrypted"

PROMISE = (
    "Experimental. Means and a party's own Gram matrix keep their promise against everybody. "
    "Products between parties are computed under encryption: their epsilon holds against "
    "computationally bounded parties and coordinators, all pooling what they see, if every named "
    "peer follows the protocol. Epsilon does not bound a peer that does not: in every job it can "
    "read about rows of its choice, up to the bits that each of a party's keys opens (at most "
    "2300) and that each of its replies carries (at most 8192)."
)

_HOLDS = {
    EVERYBODY: "holds against everybody, whatever they know and do",
    PEERS: "holds against computationally bounded peers that follow the protocol",
    ENCRYPTED: "encrypted: costs nothing while its key is secret; its products are charged",
}


def promise_of(kind: str) -> str:
    """Return which kind of promise a release of ``kind`` rests on."""
    base = parsed(kind)[0]
    if base in (MEANS, WIDE, GRAM):
        return EVERYBODY
    if base in (*REPLIES, *OPENINGS):
        return PEERS
    if base in SEALED:
        return ENCRYPTED
    raise ValueError("the job has no release of that kind")


def statement_of(promise: str) -> str:
    """Return a promise in words."""
    return _HOLDS[promise]
