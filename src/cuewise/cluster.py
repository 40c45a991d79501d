"""Ray, where the user has it: the package, and joining a cluster with errors that say what to mend."""

from __future__ import annotations

import importlib
import socket
from typing import Any

from cuewise.errors import UserError


def load_ray() -> Any:
    """The ray package, or what to install."""
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise UserError("--engine ray needs Ray: pip install 'cuewise[ray]', or use --engine local") from None


def connect(ray: Any, address: str | None) -> None:
    """Join the cluster, or start one here."""
    if address is not None:
        knock(address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    options |= {"address": address} if address else {"include_dashboard": False}
    try:
        ray.init(**options)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        where = f"at {address!r}" if address else "on this machine"
        raise UserError(f"no Ray cluster {where} ({str(error).splitlines()[0]}); check --address") from error


def knock(address: str) -> None:
    """An error where nothing listens at host:port; Ray itself would end the whole process."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return  # "auto", "local": Ray finds out by itself
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise UserError(f"no Ray cluster at {address!r} ({error}); check --address") from None
