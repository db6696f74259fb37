"""The programs under a load that leaves them idle most of the time, by the name of their executable."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from bench.faults.programs import apache, mariadb, nginx, postgres, redis, shop
from bench.faults.programs.fault import Service

BOUNDED: dict[str, Callable[[Path], AbstractContextManager[Service]]] = {
    "redis-server": redis.served,
    "postgres": postgres.served,
    "nginx": nginx.served,
    "apache2": apache.served,
    "mariadbd": mariadb.served,
    "shop": shop.served,
}
