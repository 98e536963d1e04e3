"""What must hold of docker-compose.yml: compose.py FILE"""

import re
import sys

from ruamel.yaml import YAML

with open(sys.argv[1]) as file:
    composed = YAML(typ="safe").load(file)

services = composed["services"]
published = [name for name, service in services.items() if service.get("ports")]
assert published == ["gateway"], f"reached from outside: {published}"
for name, service in services.items():
    assert re.search(r":v?\d+(\.\d+)+", service["image"]), f"{name}: {service['image']} names no version"
    limits = service["deploy"]["resources"]["limits"]
    assert limits["cpus"] and limits["memory"], name
    assert set(service.get("secrets", [])) <= set(composed["secrets"]), name
    assert set(service["networks"]) <= set(composed["networks"]), name
    for value in map(str, (service.get("environment") or {}).values()):
        assert not re.search(r"//[^/@]*:[^/@]*@", value), f"{name} states a password"
    for other in service.get("depends_on", {}):
        assert other in services, f"{name} waits for {other}"
assert all(set(secret) == {"file"} for secret in composed["secrets"].values())
for name in ("serve", "worker"):
    assert services[name]["deploy"]["replicas"] == 2
    assert services[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert services[name]["read_only"] and services[name]["cap_drop"] == ["ALL"]
assert services["postgres"]["healthcheck"]["test"] and "back" in services["postgres"]["networks"]
assert composed["networks"]["back"]["internal"], "the database is reached from outside"
print("composed as it should be")
