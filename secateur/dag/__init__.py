"""The description of a job: vertices, edges and the processor contract. It holds pure values and does no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secateur.exports import exports
from secateur.protocol.job_description import JobConfig, OnMemberLost

if TYPE_CHECKING:
    from secateur.dag.dag import DAG, FrozenDAG
    from secateur.dag.edge import Edge, EdgeConfig, between, from_
    from secateur.dag.placement import Anywhere, OnCoordinator, OnMembers, OnPartitions, Placement, Spread, Unrestricted
    from secateur.dag.processor import Emitter, Offload, Outbox, Param, Processor, ProcessorContext, bind_value
    from secateur.dag.supplier import (
        FactorySupplier,
        MetaContext,
        ProcessorMetaSupplier,
        ProcessorSupplier,
        ReplicatedMetaSupplier,
        SupplierContext,
        force_total_parallelism_one,
        lazy_total_parallelism_one,
        meta_supplier_of,
        total_parallelism_one_at_owner,
    )
    from secateur.dag.vertex import Vertex

__all__ = [
    "DAG",
    "Anywhere",
    "Edge",
    "EdgeConfig",
    "Emitter",
    "FactorySupplier",
    "FrozenDAG",
    "JobConfig",
    "MetaContext",
    "Offload",
    "OnCoordinator",
    "OnMemberLost",
    "OnMembers",
    "OnPartitions",
    "Outbox",
    "Param",
    "Placement",
    "Processor",
    "ProcessorContext",
    "ProcessorMetaSupplier",
    "ProcessorSupplier",
    "ReplicatedMetaSupplier",
    "Spread",
    "SupplierContext",
    "Unrestricted",
    "Vertex",
    "between",
    "bind_value",
    "force_total_parallelism_one",
    "from_",
    "lazy_total_parallelism_one",
    "meta_supplier_of",
    "total_parallelism_one_at_owner",
]

_FILES = {
    "dag": ["DAG", "FrozenDAG"],
    "edge": ["Edge", "EdgeConfig", "between", "from_"],
    "placement": ["Anywhere", "OnCoordinator", "OnMembers", "OnPartitions", "Placement", "Spread", "Unrestricted"],
    "processor": ["Emitter", "Offload", "Outbox", "Param", "Processor", "ProcessorContext", "bind_value"],
    "supplier": [
        "FactorySupplier",
        "MetaContext",
        "ProcessorMetaSupplier",
        "ProcessorSupplier",
        "ReplicatedMetaSupplier",
        "SupplierContext",
        "force_total_parallelism_one",
        "lazy_total_parallelism_one",
        "meta_supplier_of",
        "total_parallelism_one_at_owner",
    ],
    "vertex": ["Vertex"],
}

_, __getattr__ = exports(__name__, _FILES)
