"""The coordinator's logic: sessions, jobs and rounds, without I/O."""
