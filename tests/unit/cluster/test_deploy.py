"""The manifest for Kubernetes fits what secateur.start takes, and itself."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

import secateur

yaml = pytest.importorskip("yaml", reason="Ray brings it")
MANIFEST = Path(secateur.__file__).parent.parent / "deploy" / "kuberay.yaml"


@pytest.fixture(scope="module")
def documents() -> dict[str, Any]:
    return {document["kind"]: document for document in yaml.safe_load_all(MANIFEST.read_text())}


def start_call(documents: dict[str, Any]) -> dict[str, Any]:
    """The arguments with which the job starts the cluster."""
    (container,) = documents["Job"]["spec"]["template"]["spec"]["containers"]
    calls = [node for node in ast.walk(ast.parse(container["command"][-1])) if isinstance(node, ast.Call)]
    (call,) = calls
    return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}


def test_the_job_starts_a_detached_cluster_with_settings_that_there_are(documents: dict[str, Any]) -> None:
    given = start_call(documents)
    assert given.keys() <= inspect.signature(secateur.start).parameters.keys()
    assert given["detached"]
    assert given["name"]


def test_every_member_has_a_worker_with_the_cpus_that_it_asks_for(documents: dict[str, Any]) -> None:
    given, cluster = start_call(documents), documents["RayCluster"]
    (group,) = cluster["spec"]["workerGroupSpecs"]
    (container,) = group["template"]["spec"]["containers"]
    assert group["replicas"] == given["members"]
    assert int(container["resources"]["requests"]["cpu"]) >= given["ray_actor_options"]["num_cpus"]
    service = f"{cluster['metadata']['name']}-head-svc"
    assert given["ray_address"].split(":")[0] == service


def test_ray_does_not_put_the_members_behind_other_processes(documents: dict[str, Any]) -> None:
    spec = documents["RayCluster"]["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        (container,) = group["template"]["spec"]["containers"]
        assert {"name": "RAY_worker_niceness", "value": "0"} in container["env"]
