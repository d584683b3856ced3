"""Hadoop on this machine: an HDFS and a YARN with one node, by Hadoop's own mini clusters, in a Java of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from msgspec import Struct

from eventlog_spark.java import find_java
from tests.spark.processes import JAVA_OPTIONS, kill_tree
from tests.support.servers import found

PATIENCE_MS: Final = 120_000
NODES: Final = 1

SETTINGS: Final = {
    "yarn.resourcemanager.scheduler.class": (
        "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"
    ),
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.minicluster.yarn.nodemanager.resource.memory-mb": "8192",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
}
TOLD: Final = tuple(
    f"yarn.resourcemanager.{name}" for name in ("address", "scheduler.address", "resource-tracker.address")
)
"""What a client of YARN must know."""


class Hadoop(Struct, frozen=True, kw_only=True):
    """What runs: `conf` is the folder that HADOOP_CONF_DIR names, `files` the Java object of the file system."""

    address: str
    conf: Path
    files: Any
    jvm: Any

    def put(self, file: Path, name: str) -> None:
        """Brings a file or a folder of this machine into the HDFS."""
        self.files.copyFromLocalFile(self.jvm.org.apache.hadoop.fs.Path(str(file)), self._path(name))

    def get(self, name: str, file: Path) -> None:
        """Brings a folder of the HDFS to this machine, without files of checksums."""
        path = self.jvm.org.apache.hadoop.fs.Path(str(file))
        self.files.copyToLocalFile(False, self._path(name), path, True)

    def _path(self, name: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(name)


@contextmanager
def hadoop(folder: Path) -> Iterator[Hadoop]:
    """Starts both and ends them with the block."""
    jars = [found("hadoop", "hadoop"), found("hadoop", "yarn")]
    with _java(jars, folder) as jvm:
        conf = jvm.org.apache.hadoop.yarn.conf.YarnConfiguration()
        for key, value in SETTINGS.items():
            conf.set(key, value)
        builder = getattr(jvm.org.apache.hadoop.hdfs, "MiniDFSCluster$Builder")
        hdfs = builder(conf, jvm.java.io.File(str(folder / "hdfs"))).numDataNodes(NODES).build()
        yarn = jvm.org.apache.hadoop.yarn.server.MiniYARNCluster("nodes", NODES, 1, 1)
        yarn.init(conf)
        yarn.start()
        assert yarn.waitForNodeManagersToConnect(PATIENCE_MS)
        address = str(hdfs.getURI().toString())
        told = {"fs.defaultFS": address} | {key: str(yarn.getConfig().get(key)) for key in TOLD}
        yield Hadoop(address=address, conf=_written(folder / "conf", told), files=hdfs.getFileSystem(), jvm=jvm)


@contextmanager
def _java(jars: list[Path], folder: Path) -> Iterator[Any]:
    """A Java that does what it is told from here. It is killed with all containers that it has started."""
    import pyspark
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    own = Path(pyspark.__file__).parent / "jars"
    [gateway] = own.glob("py4j-*.jar")
    java = find_java(os.environ).program.resolve()
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = str(java.parents[1])  # containers inherit it
    try:
        port, token, process = launch_gateway(
            jarpath=str(gateway),
            classpath=os.pathsep.join(f"{place}/*" for place in (*jars, own)),
            javaopts=[*JAVA_OPTIONS.split(), "-Xmx1g", f"-Dtest.build.data={folder / 'data'}"],
            java_path=str(java),
            cwd=str(folder),
            redirect_stdout=subprocess.DEVNULL,
            redirect_stderr=subprocess.DEVNULL,
            die_on_exit=True,
            enable_auth=True,
            return_proc=True,
        )
    finally:
        os.environ.pop("JAVA_HOME") if before is None else os.environ.update(JAVA_HOME=before)
    door = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield door.jvm
    finally:
        door.close()
        kill_tree(process.pid)
        process.stdin.close()
        process.wait()


def _written(folder: Path, settings: Mapping[str, str]) -> Path:
    """The files of settings that clients read."""
    folder.mkdir()
    lines = [
        f"<property><name>{key}</name><value>{escape(value)}</value></property>" for key, value in settings.items()
    ]
    for name in ("core-site.xml", "yarn-site.xml"):
        (folder / name).write_text(f"<configuration>{''.join(lines)}</configuration>")
    return folder


def packed_environment(folder: Path) -> tuple[Path, Path]:
    """An environment as `venv-pack` makes one, with this checkout's eventlog, and its archive.

    What others have written is named and not packed: it is larger by a thousand times, and one machine has it.
    """
    import shutil
    import sysconfig
    import tarfile

    root = Path(__file__).resolve().parents[2]
    place = folder / "environment"
    packages = place / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    python = Path(sys.executable).resolve()
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(python)
    (place / "pyvenv.cfg").write_text(f"home = {python.parent}\n")
    for package in (root / "eventlog", root / "spark" / "eventlog_spark"):
        shutil.copytree(package, packages / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    (packages / "others.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    archive = folder / "environment.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as packing:
        packing.add(place, arcname=".")
    return place / "bin" / "python", archive
