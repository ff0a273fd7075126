"""Settings for all tests."""

import os

from hypothesis import settings

# The same examples every time: a suite that passes once passes again. To search for new failures
# set COLONNADE_EXPLORE=1. No deadlines: a busy machine is no failure.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile("explore" if os.environ.get("COLONNADE_EXPLORE") else "fixed")
