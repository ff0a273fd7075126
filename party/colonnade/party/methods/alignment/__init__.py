"""A party in one run of an alignment: its list, its secrets, and an answer a round."""
