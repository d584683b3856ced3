"""What spark-submit runs: `eventlog convert` with the session that spark-submit has made.

    spark-submit --master … --archives environment.tar.gz#environment spark/submit/convert.py archive/ --out documents/

The words after the file are those of `eventlog convert`; master and settings are told to spark-submit.
"""

from __future__ import annotations

import sys

from eventlog.cli.main import run

if __name__ == "__main__":
    # Only Spark follows a log.
    engine = [] if sys.argv[1:2] == ["follow"] else ["--engine", "spark"]
    run(["convert", *sys.argv[1:], *engine])
