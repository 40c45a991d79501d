"""Ray, where the user has it: the package, and a cluster to join or to start on this machine."""

from __future__ import annotations

import importlib
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from cuewise.errors import UserError

LOOPBACK = "127.0.0.1"


def load_ray(address: str | None = None) -> Any:
    """The ray package, or what to install."""
    if address is None and "ray" not in sys.modules:
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # read at import; older versions do not know it
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise UserError("--engine ray needs Ray: pip install 'cuewise[ray]', or use --engine local") from None


def connect(ray: Any, address: str | None) -> None:
    """Join the cluster at `address`, or start one that listens on this machine's loopback interface only."""
    if address is not None:
        knock(address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    # "local": without it Ray joins a cluster that it finds on this machine, also one that is long gone
    options |= {"address": address} if address else {"address": "local", "include_dashboard": False}
    try:
        with on_loopback(ray, options) if address is None else nullcontext():
            ray.init(**options)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        where = f"at {address!r}" if address else "on this machine"
        raise UserError(f"no Ray cluster {where} ({str(error).splitlines()[0]}); check --address") from error
    if address is None:
        print(f"started Ray for this command; it listens on {_listening(ray)}", file=sys.stderr, flush=True)


@contextmanager
def on_loopback(ray: Any, options: dict[str, Any]) -> Iterator[None]:
    """Give a new instance the address 127.0.0.1, as Ray itself does on macOS and Windows.

    On Linux Ray replaces a loopback address that it is given by one that others can reach, unless its constants say that
    there is no cluster.
    """
    options["_node_ip_address"] = LOOPBACK
    constants = importlib.import_module("ray._private.ray_constants")
    before = getattr(constants, "ENABLE_RAY_CLUSTER", None)
    constants.ENABLE_RAY_CLUSTER = False  # type: ignore[attr-defined]
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before  # type: ignore[attr-defined]


def _listening(ray: Any) -> str:
    found = str(ray.util.get_node_ip_address())
    return f"{found} only" if found == LOOPBACK else f"{found}, which other machines can reach"


def knock(address: str) -> None:
    """An error where nothing listens at host:port; Ray itself would end the whole process."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return  # "auto", "local": Ray finds out by itself
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise UserError(f"no Ray cluster at {address!r} ({error}); check --address") from None
