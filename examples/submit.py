"""Submit a job to a running federation and fetch its report.

This needs a coordinator and parties: ``python examples/submit.py hub.example.org:7443 pki/
annual_cost``.
"""

import sys
from pathlib import Path

# --8<-- [start:submit]
from colonnade.client import Client, JobOptions, JobReport


def submit(address: str, credentials: Path, target: str) -> JobReport:
    """Submit a job at joint epsilon 1, follow it, and return its report."""
    with Client(address, credentials) as client:
        plan = client.plan(JobOptions(epsilon=1.0), target=target)
        print(f"{plan.method}, {plan.rounds} rounds; at most epsilon {plan.epsilon:.3g}")
        job_id = client.submit(plan)
        client.wait(job_id, on_change=lambda view: print(view.rounds_done, "of", view.rounds))
        return client.report(job_id)


# --8<-- [end:submit]

if __name__ == "__main__":
    report = submit(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
    print(report.statement)
    if report.model is not None:
        print(report.model.coefficients())
