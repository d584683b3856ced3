"""A capture server behind JDBC for tests: Java compiled here, on the database H2.

`./dev fetch jdbc` gets H2's jar; EVENTLOG_REQUIRE=jdbc makes its absence a failure. No driver or server of Informix or GBase is here: the calls of the documented interface
are, with the names of the vendors' classes.
"""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path

from tests.support.servers import absent, found, java_compiler

HERE = Path(__file__).parent
PACKAGES = ("com.informix.jdbc", "com.gbasedbt.jdbc")


def classpath(folder: Path) -> list[str]:
    """The classes of the stand-in, compiled into the folder, and the jar behind them."""
    compiler = java_compiler("jdbc")
    if find_spec("jpype") is None:
        absent("jdbc", "the package JPype1 is not installed")
    jars = sorted(found("jdbc", "h2").glob("h2-*.jar"))
    sources = [*(HERE / "java" / "standin").glob("*.java")]
    for package in PACKAGES:
        source = folder / "java" / package / "IfxSmartBlob.java"
        source.parent.mkdir(parents=True)
        source.write_text((HERE / "java" / "IfxSmartBlob.java").read_text().replace("PACKAGE", package))
        sources.append(source)
    classes = folder / "classes"
    subprocess.run([*compiler, "-d", classes, *sources], check=True)
    services = classes / "META-INF" / "services"
    services.mkdir(parents=True)
    (services / "java.sql.Driver").write_text("standin.StandIn\n")
    return [str(classes), *map(str, jars)]
