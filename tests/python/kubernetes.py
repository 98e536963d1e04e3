"""What must hold of the manifests of Kubernetes: kubernetes.py FOLDER"""

import copy
import sys
from pathlib import Path

import kubernetes_validate
import yaml

# the oldest with all that the manifests use, and the newest that the validator knows
VERSIONS = ["1.25", kubernetes_validate.latest_version()]
SECRETS = {"master-key": "guardian-master-key", "database": "guardian-database"}


def load(folder):
    """The documents of the files that kustomization.yaml names, which are all of the folder."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    files = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(kustomization["resources"]) == files, "kustomization.yaml names other files"
    documents = [document for name in sorted(files) for document in yaml.safe_load_all((folder / name).read_text())]
    for document in documents:
        of_namespace = document["metadata"].get("namespace", document["metadata"]["name"])
        assert of_namespace == kustomization["namespace"], document["metadata"]
    return documents, kustomization


def check_schemas(documents):
    """Each document is of its schema, and a wrong one is not."""
    for document in documents:
        for version in VERSIONS:
            kubernetes_validate.validate(document, version, strict=True)
    wrong = copy.deepcopy(next(document for document in documents if document["kind"] == "Deployment"))
    wrong["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    try:
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)
    except kubernetes_validate.ValidationError:
        return
    raise AssertionError("the validator accepts what there is not")


def check_pod(name, pod, image, maps):
    """What each pod is allowed, and what it mounts."""
    assert not pod["automountServiceAccountToken"] and not pod["enableServiceLinks"], name
    allowed = pod["securityContext"]
    assert allowed["runAsNonRoot"] and allowed["runAsUser"] == allowed["fsGroup"] == 10001, name
    assert allowed["seccompProfile"] == {"type": "RuntimeDefault"}, name
    (container,) = pod["containers"]
    assert container["image"] == image, name
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }, name
    for bound in ("requests", "limits"):
        assert set(container["resources"][bound]) == {"cpu", "memory"}, name
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes), name
    for volume, secret in SECRETS.items():
        assert volumes[volume]["secret"] == {"secretName": secret, "defaultMode": 0o440}, name
    paths = {mount["mountPath"] for mount in container["volumeMounts"]}
    for source in container["envFrom"]:
        data = maps[source["configMapRef"]["name"]]
        for variable in ("PGPASSWORD_FILE", "GUARDIAN_MASTER_KEY_FILE"):
            assert data[variable].rsplit("/", 1)[0] in paths, f"{name} does not mount {variable}"


def check_deployment(name, spec):
    """A deployment is replaced without a gap, and asked for its health where it answers."""
    assert spec["replicas"] >= 2, name
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0, name
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels, name
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"guardian-serve": {"http": 8080, "metrics": 9464}, "guardian-worker": {"metrics": 9464}}[name]
    asked = {probe: container[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {probe: get["path"] for probe, get in asked.items()} == {
        # a store that is away is no reason to start processes again
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }
    assert all(get["port"] in ports for get in asked.values()), name
    environment = {variable["name"]: variable["value"] for variable in container["env"]}
    drain = int(environment.get("GUARDIAN_DRAIN_SECONDS", 0))
    assert pod["terminationGracePeriodSeconds"] > drain + 20 + 10, name
    return labels, set(ports)


def main(folder):
    documents, kustomization = load(folder)
    check_schemas(documents)
    found = {}
    for document in documents:
        found.setdefault(document["kind"], {})[document["metadata"]["name"]] = document
    assert "Secret" not in found, "secrets are made at the site"
    maps = {name: document["data"] for name, document in found["ConfigMap"].items()}
    (image,) = kustomization["images"]
    image = f"{image['name']}:{image['newTag']}"

    pods = {}
    for name, document in found["Deployment"].items():
        labels, ports = check_deployment(name, document["spec"])
        pods[name] = (labels, ports)
    assert set(pods) == {"guardian-serve", "guardian-worker"}
    for kind in ("Deployment", "Job"):
        for name, document in found[kind].items():
            pod = document["spec"]["template"]["spec"]
            check_pod(name, pod, image, maps)
            assert pod["serviceAccountName"] in found["ServiceAccount"], name
            assert [f"guardian-{argument}" for argument in pod["containers"][0]["args"]] == [name]

    (service,) = found["Service"].values()
    labels, ports = pods["guardian-serve"]
    assert service["spec"]["selector"] == labels and service["spec"]["ports"][0]["targetPort"] in ports
    for name, budget in found["PodDisruptionBudget"].items():
        assert budget["spec"]["selector"]["matchLabels"] == pods[name][0], name
    assert set(found["PodDisruptionBudget"]) == set(pods)

    policies = found["NetworkPolicy"]
    everything, serve = policies["guardian"]["spec"], policies["guardian-serve"]["spec"]
    assert everything["podSelector"] == {} and set(everything["policyTypes"]) == {"Ingress", "Egress"}
    assert serve["podSelector"]["matchLabels"] == labels
    admitted = [(rule["from"], port["port"]) for rule in everything["ingress"] + serve["ingress"] for port in rule["ports"]]
    assert sorted(port for _, port in admitted) == ["http", "metrics"] and all(sources for sources, _ in admitted)
    assert all(rule["to"] for rule in everything["egress"]), "pods reach everything"
    print("each manifest is as it should be")


main(Path(sys.argv[1]))
