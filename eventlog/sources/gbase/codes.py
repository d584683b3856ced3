"""What the server's error codes mean, as sentences; the numbers are those of Informix 14.10."""

from __future__ import annotations

from typing import Final

CODES: Final[dict[int, tuple[str, str]]] = {
    0: ("CDC_E_OK", "all is well"),
    -83701: ("CDC_E_NOCDCDB", "there is no database syscdcv1; the server's script syscdcv1.sql makes it"),
    -83702: ("CDC_E_APIVERS", "this version of the interface is not supported; the other minor version may be"),
    -83703: ("CDC_E_NODB", "there is no such database"),
    -83704: ("CDC_E_DBNOTLOGGED", "the database is not logged, so its changes cannot be captured"),
    -83705: ("CDC_E_NOTAB", "there is no such table"),
    -83706: ("CDC_E_TABPROPERTIES", "the table is of a kind that cannot be captured"),
    -83707: ("CDC_E_NOCOL", "there is no such column"),
    -83708: ("CDC_E_NOSESS", "there is no such session"),
    -83709: ("CDC_E_NOREOPEN", "the session cannot be opened again"),
    -83710: ("CDC_E_TABCAPTURED", "the table is captured in this session already"),
    -83711: ("CDC_E_TABNOTCAPTURED", "the table is not captured in this session"),
    -83712: ("CDC_E_ARGNULL", "an argument is NULL"),
    -83713: ("CDC_E_LSN", "the position is no longer in the logical logs of the server"),
    -83714: ("CDC_E_DIRECTION", "the logs cannot be read in that direction"),
    -83715: ("CDC_E_DUPLSESS", "there is such a session already"),
    -83724: ("CDC_E_ARG4", "the fourth argument is out of bounds, probably"),
    -83790: ("CDC_E_INTERNAL", "something went wrong inside the server"),
    -674: ("SQL", "the function is not there or may not be called; capturing needs the administrator's account"),
    -19816: ("SQL", "the table cannot be altered while full row logging is on"),
}


def in_words(code: int) -> str:
    """End a sentence with the code, its name and meaning."""
    if code not in CODES:
        return f"{code}, which syscdcv1:syscdcerrcodes may explain."
    name, meaning = CODES[code]
    return f"{code} ({name}): {meaning}."
