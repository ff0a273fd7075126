"""The operator's side of a federation, from Python: everything that ``colonnade job`` does.

`Client` talks with a coordinator; `JobOptions`, `AdmmOptions`, `PredictOptions`, `EvaluateOptions`
and `AlignOptions` say what is asked of a job.

Examples
--------
``client`` is ``Client("hub.example.org:7443", "pki")``; two parties are attached. What would a
job do and cost?

>>> {offer.party: offer.label[0] for offer in client.parties()}
{'hospital': 'y', 'laboratory': 'y'}
>>> plan = client.plan(JobOptions(epsilon=0.5, method="moments"), target="y")
>>> plan.epsilon <= 0.5, list(plan.epsilon_by_party)
(True, ['hospital', 'laboratory'])

Submit it, wait, and read its report:

>>> job_id = client.submit(plan)
>>> client.wait(job_id).state
'finished'
>>> report = client.report(job_id)
>>> report.epsilon <= 0.5, report.payload_bytes == report["uplink"]["predicted_bytes"]
(True, True)
>>> sorted({feature.party for feature in report.model.features})
['hospital', 'laboratory']

Released moments solve other problems at no further cost:

>>> client.solve(job_id, "ridge", strength=0.1).label.name
'y'

What would it cost to measure a model on held-out people?

>>> options = JobOptions(epsilon=0.5, method="moments", evaluate=0.1)
>>> job_id = client.submit(options, target="y", parties=["hospital"])
>>> client.wait(job_id).state
'finished'
>>> evaluation = client.plan_evaluation(job_id)
>>> evaluation.party, 0.0 < evaluation.epsilon <= 0.1
('hospital', True)

Without a plan, and looking on:

>>> job_id = client.submit(JobOptions(epsilon=0.1), target="y", parties=["laboratory"])
>>> [view.state for view in client.watch(job_id)][-1]
'finished'
>>> client.show(job_id[:12]).job.label, client.jobs(limit=1)[0].job_id == job_id
('y', True)
>>> client.cancel(job_id).state  # it has ended already
'finished'

A job over clients; a table that is not divided among clients is one client's:

>>> job_id = client.submit_admm(AdmmOptions(epsilon=0.2, rounds=1, sampled=2), target="y")
>>> client.wait(job_id).over_clients
True
"""

from colonnade.client.align_builder import AlignOptions
from colonnade.client.client import Client
from colonnade.client.evaluate_builder import EvaluateOptions, EvaluationPlan
from colonnade.client.hub_views import CoordinatorView
from colonnade.client.options import AdmmOptions, JobOptions
from colonnade.client.predict_builder import PredictOptions
from colonnade.client.results import JobDetails, JobPlan, JobReport
from colonnade.client.views import JobView, PartyOffer, PartyView

__all__ = [
    "AdmmOptions",
    "AlignOptions",
    "Client",
    "CoordinatorView",
    "EvaluateOptions",
    "EvaluationPlan",
    "JobDetails",
    "JobOptions",
    "JobPlan",
    "JobReport",
    "JobView",
    "PartyOffer",
    "PartyView",
    "PredictOptions",
]
