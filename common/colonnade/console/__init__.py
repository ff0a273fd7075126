"""Local pages in a browser for a coordinator's operator and a party's data-protection officer.

A console is a process of its own on loopback: it is neither the coordinator nor the party's vault,
and it can do nothing that its user could not do on the command line.
"""
