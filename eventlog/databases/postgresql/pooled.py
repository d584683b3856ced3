"""Whether a connection leads to a session of the server's, or to a pooler that has several."""

from __future__ import annotations

from typing import Any


def is_behind_pooler(driver: Any) -> bool:
    """Return True if another backend answers than the connection was told of.

    Behind a pooler psycopg must not prepare statements: another client may use the name.
    """
    if not hasattr(driver, "prepare_threshold"):
        return False  # another driver than the one that our extra brings
    cursor = driver.cursor()
    cursor.execute("SELECT pg_backend_pid()", prepare=False)
    [pid] = cursor.fetchone()
    cursor.close()
    driver.rollback()
    if pid == driver.info.backend_pid:
        return False
    driver.prepare_threshold = None
    return True
