"""Submit a job to a running federation and fetch its report: needs a coordinator and parties.

Run it with ``python examples/submit.py hub.example.org:7443 pki/ annual_cost``.
"""

import sys
from pathlib import Path

# --8<-- [start:submit]
from colonnade.client.builder import JobOptions, author
from colonnade.client.client import Client
from colonnade.pki.authority import load_credentials


def submit(address: str, credentials: Path, target: str) -> dict[str, object]:
    """Submit a job at joint epsilon 1, follow it, and return its report."""
    with Client(address, load_credentials(credentials)) as client:
        job = author(client.parties(), JobOptions(epsilon=1.0), target=target)
        job_id = client.submit(job)
        for view in client.watch(job_id):
            print(view.state, view.rounds_done, "of", view.rounds)
        return client.report(job_id)


# --8<-- [end:submit]

if __name__ == "__main__":
    submit(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
