"""A capture server behind JDBC for tests: Java compiled here, on the database H2 that Maven fetches.

H2's jar is in the folder that EVENTLOG_H2_JARS names or in the user's cache, else Maven fetches it once if
EVENTLOG_REQUIRE=jdbc asks for it. No driver or server of Informix or GBase is here: the calls of the documented interface
are, with the names of the vendors' classes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from tests.maven import fetched
from tests.servers import absent, required

HERE = Path(__file__).parent
PACKAGES = ("com.informix.jdbc", "com.gbasedbt.jdbc")


def classpath(folder: Path) -> list[str]:
    """The classes of the stand-in, compiled into the folder, and the jar behind them."""
    compiler = shutil.which("javac")
    if compiler is None or find_spec("jpype") is None:
        absent("jdbc", "there is no javac" if compiler is None else "the package JPype1 is not installed")
    jars = sorted(_jars().glob("h2-*.jar"))
    sources = [*(HERE / "java" / "standin").glob("*.java")]
    for package in PACKAGES:
        source = folder / "java" / package / "IfxSmartBlob.java"
        source.parent.mkdir(parents=True)
        source.write_text((HERE / "java" / "IfxSmartBlob.java").read_text().replace("PACKAGE", package))
        sources.append(source)
    classes = folder / "classes"
    subprocess.run([compiler, "-d", classes, *sources], check=True)
    services = classes / "META-INF" / "services"
    services.mkdir(parents=True)
    (services / "java.sql.Driver").write_text("standin.StandIn\n")
    return [str(classes), *map(str, jars)]


def _jars() -> Path:
    """The folder of H2's jar, filled by Maven where nobody has done so before and the test must run."""
    folder = Path(os.environ.get("EVENTLOG_H2_JARS") or Path.home() / ".cache" / "eventlog" / "h2-2.3.232")
    if folder.is_dir():
        return folder
    if "jdbc" not in required():
        absent("jdbc", "EVENTLOG_H2_JARS names no folder of jars, and EVENTLOG_REQUIRE does not ask Maven for them")
    return fetched("jdbc", HERE / "pom.xml", folder)
