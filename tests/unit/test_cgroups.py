"""Limits of containers, from files as the Linux kernel writes them."""

import jax
import pytest

from agents.runtime import cgroups, mesh


@pytest.fixture
def machine(tmp_path):
    """machine(lines of /proc/self/cgroup, {file under /sys/fs/cgroup: text}): the root of its file system."""

    def written(groups, files):
        for path, text in {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{k}": v for k, v in files.items()}}.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text + "\n")
        return tmp_path

    return written


VERSION_1 = "5:cpu,cpuacct:/docker/f00\n4:memory:/docker/f00\n0::/"


def test_the_outer_group_may_have_the_smaller_limit(machine):
    files = {"user/memory.max": "1000", "user/job/memory.max": "2000"}
    files |= {"user/cpu.max": "150000 100000", "user/job/cpu.max": "max 100000"}
    root = machine("0::/user/job", files)
    assert list(cgroups.memory(root)) == [2000, 1000]
    assert list(cgroups.cpus(root)) == [1.5]


def test_version_1_as_docker_shows_it(machine):
    """With the path of the host, and the limit at the top."""
    files = {"memory/memory.limit_in_bytes": "3000", "cpu/cpu.cfs_quota_us": "250000", "cpu/cpu.cfs_period_us": "50000"}
    root = machine(VERSION_1, files)
    assert list(cgroups.memory(root)) == [3000]
    assert list(cgroups.cpus(root)) == [5.0]


@pytest.mark.parametrize(
    ("groups", "files"),
    [
        ("0::/", {"memory.max": "max", "cpu.max": "max 100000"}),
        (VERSION_1, {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}),
        ("0::/", {}),
    ],
)
def test_no_limit(machine, groups, files):
    root = machine(groups, files)
    assert not list(cgroups.memory(root)) and not list(cgroups.cpus(root))


def test_no_control_groups(tmp_path):
    assert not list(cgroups.memory(tmp_path)) and not list(cgroups.cpus(tmp_path))


@pytest.mark.parametrize(("limits", "devices"), [([], 8), ([3.5], 3), ([0.5], 1), ([16.0, 2.0], 2), ([100.0], 8)])
def test_devices_of_a_cpu_are_the_whole_cores_of_the_limit(limits, devices, monkeypatch):
    asked = {}
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(mesh.os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.setattr(cgroups, "cpus", lambda: iter(limits))
    monkeypatch.setattr(jax.config, "update", asked.__setitem__)
    mesh.claim_cores()
    assert asked == {"jax_num_cpu_devices": devices}
