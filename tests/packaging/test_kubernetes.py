"""The manifests hold together: what cannot be tried without a cluster is compared with unit and configuration."""

from __future__ import annotations

import configparser
import re
from typing import Any

import yaml

from specmine.cli.setup.files import UNITS
from specmine.daemon.config.loader import parse_config
from specmine.daemon.config.tree import Config
from tests.support.paths import ROOT

MANIFESTS: list[dict[str, Any]] = list(
    yaml.safe_load_all((ROOT / "packaging/kubernetes/specmine.yaml").read_text(encoding="utf-8"))
)
BY_KIND = {each["kind"]: each for each in MANIFESTS}
POD = BY_KIND["DaemonSet"]["spec"]["template"]
(CONTAINER,) = POD["spec"]["containers"]


def test_each_object_has_a_version_and_is_in_the_namespace() -> None:
    space = BY_KIND["Namespace"]["metadata"]["name"]
    assert [each["apiVersion"] for each in MANIFESTS] == ["v1", "v1", "apps/v1"]
    assert {each["metadata"]["namespace"] for each in MANIFESTS[1:]} == {space}


def test_the_selector_finds_the_pods() -> None:
    selector = BY_KIND["DaemonSet"]["spec"]["selector"]["matchLabels"]
    assert selector.items() <= POD["metadata"]["labels"].items()


def test_it_has_the_capabilities_of_the_unit_and_those_to_give_up_root() -> None:
    """Nothing is privileged, and the host's process ids are seen."""
    unit = configparser.ConfigParser(strict=False, interpolation=None, comment_prefixes=("#",))
    unit.read_string((ROOT / "systemd" / UNITS[0]).read_text(encoding="utf-8"))
    granted = {each.removeprefix("CAP_") for each in unit["Service"]["CapabilityBoundingSet"].split()}
    context = CONTAINER["securityContext"]
    assert set(context["capabilities"]["add"]) == granted | {"SETUID", "SETGID"}
    assert context["capabilities"]["drop"] == ["ALL"]
    assert "privileged" not in context
    assert POD["spec"]["hostPID"] is True


def test_its_configuration_is_one() -> None:
    """The daemon takes it; the port and the folders are those of the pod."""
    config = parse_config(BY_KIND["ConfigMap"]["data"]["specmined.yaml"])
    assert config.programs and all(each.cgroup for each in config.programs)
    (port,) = (each["containerPort"] for each in CONTAINER["ports"])
    assert POD["metadata"]["annotations"]["prometheus.io/port"] == str(port)
    assert str(port) in BY_KIND["ConfigMap"]["data"]["specmined.yaml"]
    mounted = {each["mountPath"] for each in CONTAINER["volumeMounts"]}
    defaults = Config()
    for path in (defaults.store.path, defaults.socket.path, defaults.host_lock, defaults.kill_switch):
        assert str(path).rpartition("/")[0] in mounted
    assert {each["name"] for each in CONTAINER["volumeMounts"]} == {each["name"] for each in POD["spec"]["volumes"]}


def test_the_image_is_made_of_the_package() -> None:
    """Files that the image copies are what ``make deb`` writes."""
    text = (ROOT / "packaging/container/Containerfile").read_text(encoding="utf-8")
    assert re.search(r"^COPY dist/specmine_\*\.deb ", text, re.MULTILINE)
    assert 'ENTRYPOINT ["/usr/bin/specmined"]' in text
    assert "dist}" in (ROOT / "packaging/deb.sh").read_text(encoding="utf-8")
