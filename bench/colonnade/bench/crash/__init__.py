"""The crash harness: kill, cut, fill and corrupt a ledger, and count what that breaks.

Everything here runs the shipped ledger and gate on real files. The checks are made from outside
the process that died, on a copy of its files taken before any recovery, with another SQLite.
"""
