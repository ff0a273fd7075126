"""The operator's side of a federation, from Python: everything that ``colonnade job`` does.

`Client` talks with a coordinator; `JobOptions`, `AdmmOptions` and `PredictOptions` say what is
asked of a job.
"""

from colonnade.client.client import Client
from colonnade.client.options import AdmmOptions, JobOptions
from colonnade.client.predict_builder import PredictOptions
from colonnade.client.results import JobDetails, JobPlan, JobReport
from colonnade.client.views import JobView, PartyOffer, PartyView

__all__ = [
    "AdmmOptions",
    "Client",
    "JobDetails",
    "JobOptions",
    "JobPlan",
    "JobReport",
    "JobView",
    "PartyOffer",
    "PartyView",
    "PredictOptions",
]
