"""The actors of a cluster: their names, where each listens, how a process finds them again, and their traces."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, Final

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError

from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import LOOPBACK, ProcessAddress, address_at
from secateur.errors import OperationalError, ProgrammingError

NAMESPACE: Final = "secateur"
CONTROLLER: Final = "controller"
STANDBY: Final = "standby"


def address_of_actor(settings: ClusterSettings, is_on_one_machine: bool) -> ProcessAddress:
    """The address at which an actor on this Ray node listens."""
    if is_on_one_machine and settings.host is None:
        return LOOPBACK
    return address_at(ray.util.get_node_ip_address(), settings.host)


def actor_name(settings: ClusterSettings, part: str) -> str:
    """The name of an actor of a cluster: of its controller, of the standby, or of a member by its first id."""
    return f"{NAMESPACE}-{settings.name or settings.cluster_id}.{part}"


def member_actors(settings: ClusterSettings) -> dict[str, ActorHandle[Any]]:
    """The actors of the members of a cluster, by the ids under which they were started."""
    prefix, found = actor_name(settings, ""), {}
    controllers = {actor_name(settings, part) for part in (CONTROLLER, STANDBY)}
    for entry in ray.util.list_named_actors(all_namespaces=True):
        name = entry["name"]
        if entry["namespace"] == NAMESPACE and name.startswith(prefix) and name not in controllers:
            with contextlib.suppress(ValueError):  # it has ended meanwhile
                found[name.removeprefix(prefix)] = ray.get_actor(name, namespace=NAMESPACE)
    return found


def controller_address_at_members(settings: ClusterSettings) -> str:
    """The address at which members dial the controller of their cluster.

    Raises:
        OperationalError: No member is left.
    """
    asking = [member.controller_address.remote() for member in member_actors(settings).values()]
    while asking:
        (answered, *_), asking = ray.wait(asking)
        with contextlib.suppress(RayError):  # its actor is dead
            return str(ray.get(answered))
    raise OperationalError(f"no member of cluster {settings.cluster_id} is left from which its controller could go on")


def controller_actor(settings: ClusterSettings, part: str = CONTROLLER) -> ActorHandle[Any] | None:
    """The controller of a cluster, or its standby; None if no such actor lives."""
    try:
        return ray.get_actor(actor_name(settings, part), namespace=NAMESPACE)
    except ValueError:
        return None


def configure_tracing(function: str | None) -> None:
    """Call the function of the setting ``tracing``, named ``module:function``; nothing for None.

    Raises:
        ProgrammingError: It cannot be found in this process, or fails.
    """
    if function is None:
        return
    module, _, name = function.partition(":")
    try:
        getattr(importlib.import_module(module), name)()
    except Exception as error:
        raise ProgrammingError(
            f"tracing={function!r} could not be called in a process of the cluster ({type(error).__name__}: {error}):"
            " the module has to be importable there, as what ray_actor_options={'runtime_env': ...} or an installed"
            " package makes it, and the library installed: pip install 'secateur[otel]'"
        ) from error
