"""A party in alignments: its people, its consent, its secrets and the rows that it is given."""
