"""The Helm chart: it lints, renders what Kubernetes takes with all that can be switched on, and refuses values that are none."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from eventlog.version import VERSION
from tests.support.servers import found

DOCKER = Path(__file__).resolve().parents[2] / "docker"
CHART = DOCKER / "helm" / "eventlog"
EVERYTHING = {
    "replicas": 3,
    "image": {"tag": "9", "pullSecrets": [{"name": "registry"}]},
    "env": [{"name": "EVENTLOG_PUBLISHER__POLLING_INTERVAL", "value": "5"}],
    "persistence": {"existingClaim": "eventlog"},
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "only", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True},
    "dashboard": {"enabled": True},
}
OPERATORS = ("ServiceMonitor", "PrometheusRule")
"""Kinds of the operator of Prometheus, which the schema of Kubernetes does not have."""


def helm(home: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = found("helm", "helm") / "helm"
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, env=environment)


def rendered(home: Path, values: dict[str, Any] | None = None) -> str:
    file = home / "values.yaml"
    file.write_text(yaml.safe_dump(values or {}), encoding="utf-8")
    done = helm(home, "template", "eventlog", CHART, "--values", file)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION.replace(".dev", "-dev"), VERSION)  # a chart has SemVer


def test_it_lints(tmp_path: Path) -> None:
    done = helm(tmp_path, "lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


def test_the_manifest_is_what_the_chart_writes(tmp_path: Path) -> None:
    written = (DOCKER / "kubernetes" / "eventlog.yaml").read_text()
    assert "".join(line for line in written.splitlines(keepends=True)[3:]) == rendered(tmp_path)


def test_with_everything_on_it_follows_the_schema_of_kubernetes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linters = found("linters", "linters")
    resources = [one for one in yaml.safe_load_all(rendered(tmp_path, EVERYTHING)) if one]
    by_kind = {one["kind"]: one for one in resources}
    assert set(by_kind) == {"ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", *OPERATORS}
    alerts = yaml.safe_load((CHART / "files" / "alerts.yml").read_text())
    assert by_kind["PrometheusRule"]["spec"] == alerts
    [dashboard] = [one for one in resources if one["metadata"]["name"] == "eventlog-dashboard"]
    assert dashboard["data"]["eventlog.json"].rstrip() == (CHART / "files" / "dashboard.json").read_text().rstrip()
    volumes = by_kind["Deployment"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "state", "persistentVolumeClaim": {"claimName": "eventlog"}} in volumes
    ours = tmp_path / "ours.yaml"
    ours.write_text(yaml.safe_dump_all(one for one in resources if one["kind"] not in OPERATORS), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(linters))
    done = subprocess.run(
        [linters / "bin" / "kubernetes-validate", "--strict", ours], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_another_configuration_makes_new_pods_and_one_publisher_needs_no_budget(tmp_path: Path) -> None:
    one, other = rendered(tmp_path, {"config": "a = 1", "replicas": 1}), rendered(tmp_path, {"config": "a = 2"})
    marks = [re.findall(r"eventlog/configuration: (\w+)", text) for text in (one, other)]
    assert marks[0] != marks[1]
    assert "PodDisruptionBudget" not in one
    assert "PodDisruptionBudget" in other


def policy_of(home: Path, values: dict[str, Any] | None = None) -> dict[str, Any] | None:
    resources = [one for one in yaml.safe_load_all(rendered(home, values)) if one]
    return next((one["spec"] for one in resources if one["kind"] == "NetworkPolicy"), None)


def test_publishers_reach_databases_receivers_and_names_and_are_reached_on_one_port(tmp_path: Path) -> None:
    policy = policy_of(tmp_path)
    assert policy is not None
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"] == [{"from": [{"podSelector": {}}], "ports": [{"protocol": "TCP", "port": "http"}]}]
    ports = [(port["protocol"], port["port"]) for rule in policy["egress"] for port in rule["ports"]]
    assert ports == [("UDP", 53), ("TCP", 53), ("TCP", 5432), ("TCP", 443)]


def test_what_publishers_reach_is_said_by_values(tmp_path: Path) -> None:
    database = {"to": [{"ipBlock": {"cidr": "192.0.2.7/32"}}], "ports": [{"protocol": "TCP", "port": 3306}]}
    policy = policy_of(tmp_path, {"networkPolicy": {"from": [], "egress": [database]}})
    assert policy is not None
    assert "ingress" not in policy  # of a policy for Ingress that is: from nobody
    assert policy["egress"][1:] == [database]
    assert policy_of(tmp_path, {"networkPolicy": {"enabled": False}}) is None


def test_the_database_must_prove_who_it_is(tmp_path: Path) -> None:
    [url] = re.findall(r'^ +url = "(postgresql.+?)"', rendered(tmp_path), re.MULTILINE)
    assert "?sslmode=verify-full&sslrootcert=/run/secrets/eventlog/ca.crt" in url


@pytest.mark.parametrize(
    "wrong",
    [
        {"replica": 2},
        {"replicas": "two"},
        {"config": ""},
        {"service": {"port": 0}},
        {"networkPolicy": {"egress": "all"}},
    ],
)
def test_values_that_are_none_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(wrong), encoding="utf-8")
    done = helm(tmp_path, "template", "eventlog", CHART, "--values", file)
    assert done.returncode != 0
    assert next(iter(wrong)) in done.stderr
