# SPDX-License-Identifier: Apache-2.0
"""Node objects of simulated machines, labelled as GPU feature discovery labels real ones."""

# model -> product, memory of one device in MiB, family, compute capability
GPU_MODELS = {
    "a100": ("NVIDIA-A100-SXM4-80GB", 81920, "ampere", "8.0"),
    "h100": ("NVIDIA-H100-80GB-HBM3", 81559, "hopper", "9.0"),
    "l4": ("NVIDIA-L4", 23034, "ada-lovelace", "8.9"),
    "t4": ("Tesla-T4", 15360, "turing", "7.5"),
}

POOL_KEY = "sublet.dev/pool"
DISK = {"ephemeral-storage": "1000Gi"}
SIMULATED = {"kwok.x-k8s.io/node": "fake"}


def cpu_node(name, cpu="32", memory="256Gi", pods="500", labels=None):
    """A machine without a GPU."""
    return _node(name, {"cpu": cpu, "memory": memory, "pods": pods, **DISK}, labels or {}, [])


def gpu_node(name, pool, model="a100", gpus=8, replicas=1, resource="nvidia.com/gpu", taint=True,
             cpu="96", memory="1000Gi", pods="500", labels=None):
    """A machine with `gpus` devices in `pool`, tainted for GPUs and (`taint`) for its pool.

    replicas > 1 is time-slicing: `resource` then counts gpus * replicas and the product says SHARED.
    """
    taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    if taint:
        taints.append({"key": POOL_KEY, "value": pool, "effect": "NoSchedule"})
    capacity = {"cpu": cpu, "memory": memory, "pods": pods, **DISK, resource: str(gpus * replicas)}
    return _node(name, capacity,
                 {POOL_KEY: pool, **_gfd_labels(model, gpus, replicas), **(labels or {})}, taints)


def pool_config(name, model="a100", kind="dedicated", per_pod=None, **extra):
    """The entry of `pools:` in a tenant's configuration for the nodes of gpu_node(pool=name)."""
    config = {
        "name": name, "kind": kind, "mode": "exclusive",
        "nodeSelector": {POOL_KEY: name},
        "tolerations": [
            {"key": POOL_KEY, "operator": "Equal", "value": name, "effect": "NoSchedule"},
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "products": [GPU_MODELS[model][0]],
        "resources": {"nvidia.com/gpu": {"gpuEq": "1"}},
    }
    if per_pod is not None:
        config["caps"] = {"perPodGPU": per_pod}
    config.update(extra)
    return config


def _gfd_labels(model, gpus, replicas):
    product, memory, family, compute = GPU_MODELS[model]
    major, minor = compute.split(".")
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": product + ("-SHARED" if replicas > 1 else ""),
        "nvidia.com/gpu.count": str(gpus),
        "nvidia.com/gpu.memory": str(memory),
        "nvidia.com/gpu.family": family,
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.replicas": str(replicas),
        "nvidia.com/gpu.sharing-strategy": "time-slicing" if replicas > 1 else "none",
        "nvidia.com/gpu.machine": "simulated",
        "nvidia.com/mig.capable": "true" if model in ("a100", "h100") else "false",
        "nvidia.com/cuda.driver-version.full": "580.65.06",
        "nvidia.com/cuda.runtime-version.full": "13.0",
        "feature.node.kubernetes.io/pci-10de.present": "true",
    }


def _node(name, capacity, labels, taints):
    standard = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", "node.kubernetes.io/instance-type": "simulated",
                "topology.kubernetes.io/region": "r1", "topology.kubernetes.io/zone": "r1a"}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {**standard, **labels}, "annotations": SIMULATED},
        "spec": {"taints": taints},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
