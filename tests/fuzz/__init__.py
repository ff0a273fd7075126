"""Fuzzing of every parser that takes foreign bytes."""
