"""The least that a publisher does with a row: look every millisecond, a file with fsync and rename, an UPDATE.

`python -m bench.bare_loop URL LOG FOLDER` goes on until it is ended. It keeps no promise: it has no journal and no lock.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

import psycopg
from sqlalchemy import make_url

PAUSE_SECONDS: Final = 0.001
DOCUMENT: Final = (
    '<xds><input><modify class-name="usr" src-dn="{key}"><modify-attr attr-name="{column}"/></modify></input></xds>'
)
LOOK: Final = "SELECT record_id, table_key, column_name FROM {log} WHERE status = 'N' ORDER BY record_id LIMIT 100"
MARK: Final = "UPDATE {log} SET status = 'S' WHERE record_id = ANY(%s) AND status = 'N'"


def publish(url: str, log: str, folder: Path) -> None:
    """Publish for ever: each look's rows become one document each, and are marked together."""
    address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    look, mark = LOOK.format(log=log), MARK.format(log=log)
    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.cursor()
        while True:
            rows = cursor.execute(look).fetchall()
            for number, key, column in rows:
                write_document(folder, f"{number:020d}.xml", DOCUMENT.format(key=key, column=column))
            if rows:
                cursor.execute(mark, ([number for number, *_ in rows],))
            time.sleep(PAUSE_SECONDS)


def write_document(folder: Path, name: str, text: str) -> None:
    """Write a file that is there whole or not at all."""
    hidden = folder / f".{name}"
    descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(descriptor, text.encode())
    os.fsync(descriptor)
    os.close(descriptor)
    hidden.replace(folder / name)


if __name__ == "__main__":
    publish(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
