"""What must hold of docker-compose.yml and of docker/single-node.yml: compose.py FILE..."""

import re
import sys
from pathlib import Path

from ruamel.yaml import YAML


def is_local(port):
    return port.startswith("127.0.0.1:")


def check_services(composed, folder):
    """What holds of each service."""
    services = composed["services"]
    outside = [name for name, service in services.items() if not all(map(is_local, service.get("ports", [])))]
    assert outside == ["gateway"], f"reached from outside: {outside}"
    for name, service in services.items():
        assert re.search(r":v?\d+(\.\d+)+", service["image"]), f"{name}: {service['image']} names no version"
        limits = service["deploy"]["resources"]["limits"]
        assert limits["cpus"] and limits["memory"], name
        assert set(service.get("secrets", [])) <= set(composed["secrets"]), name
        assert set(service["networks"]) <= set(composed["networks"]), name
        if service.get("ports"):
            reached = [network for network in service["networks"] if not composed["networks"][network].get("internal")]
            assert reached, f"{name}: no port is published on an internal network"
        for value in map(str, (service.get("environment") or {}).values()):
            assert not re.search(r"//[^/@]*:[^/@]*@", value), f"{name} states a password"
        for other in service.get("depends_on", {}):
            assert other in services, f"{name} waits for {other}"
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if not source.startswith("."):
                assert source in composed["volumes"], f"{name}: there is no volume {source}"
            elif "/secrets/" not in source:
                assert (folder / source).is_file(), f"{name} mounts {source}, which is not there"
        if name != "postgres":
            assert service["read_only"] and service["cap_drop"] == ["ALL"], name
            assert service["security_opt"] == ["no-new-privileges:true"], name
    for secret in composed["secrets"].values():
        assert set(secret) == {"file"} and (folder / secret["file"]).parent.name == "secrets"
        assert (folder / secret["file"]).parent.parent.name == "docker", secret


def check_shared(composed):
    """Several processes on one Postgres."""
    services = composed["services"]
    for name in ("serve", "worker"):
        assert services[name]["deploy"]["replicas"] == 2
        assert services[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
        assert services[name]["environment"]["GUARDIAN_MASTER_KEY_FILE"] == "/run/secrets/master_key"
    assert services["postgres"]["healthcheck"]["test"] and services["postgres"]["networks"] == ["back"]
    assert composed["networks"]["back"]["internal"], "the database is reached from outside"


def check_single(composed):
    """One process, whose store outlives it."""
    serve = composed["services"]["serve"]
    assert serve["command"] == ["serve"] and serve["deploy"]["replicas"] == 1
    assert serve["environment"]["GUARDIAN_STORE"] == "embedded" and "DATABASE_URL" not in serve["environment"]
    assert serve["environment"]["GUARDIAN_MASTER_KEY_FILE"] == "/run/secrets/master_key"
    assert serve["secrets"] == ["master_key"], "the key is made in the volume"
    assert "guardian:/var/lib/guardian" in serve["volumes"], "the store is gone with the container"
    assert composed["services"]["gateway"]["profiles"] == ["tls"], "the gateway is not optional"


for path in map(Path, sys.argv[1:]):
    with open(path) as file:
        described = YAML(typ="safe").load(file)
    check_services(described, path.parent)
    check_shared(described) if "postgres" in described["services"] else check_single(described)
    print(f"{path.name} is as it should be")
