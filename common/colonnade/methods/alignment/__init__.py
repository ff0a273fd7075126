"""Private alignment: one row order for people whom no party lists in full.

A distributed OPRF on Curve25519. Each party draws a fresh secret scalar; the tag of an id is its
hash on the curve times all of them. The coordinator relays lists from party to party, sorts the
union of the tags and tells each party the rows of its own list.
"""
