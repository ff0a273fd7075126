"""Scoring people with a job's model: masked partial scores, added up by one receiver."""
