"""Two hundred mistakes that people make, each with the sentence that names it, and none with a traceback or a riddle."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from eventlog.cli.main import exit_code

Files = Mapping[str, str | bytes]
NO_FILES: Files = MappingProxyType({})
SOURCE = '[source]\nurl = "sqlite:///app.db"\n'
OUTPUT = '[[output]]\nsink = "files"\npath = "out"\n'
HEADER = "record_id,status,event_type,event_time,perpetrator,table_name,table_key,column_name,old_value,new_value\n"
ROW = "1,N,2,2025-01-01 00:00:00,,usr,idu=1,fname,a,b\n"
SCHEMA = (
    '{"tables":[{"name":"usr","columns":[{"name":"idu","type":"integer","key":1},{"name":"fname","type":"text"}]}]}'
)
HERE = ("--database", "sqlite:///app.db")
CONVERT = ("convert", "files", "a.csv", "--out", "x", "--schema", "s.json")
HOST = "postgresql://idm@127.0.0.1:1/app"


class Mistake(NamedTuple):
    """What somebody did, the exit code, and what is said of it."""

    code: int
    said: str
    arguments: tuple[str, ...]
    files: Files = NO_FILES


def in_file(text: str | bytes, code: int, said: str, *, command: str = "check") -> Mistake:
    return Mistake(code, said, (command,), {"eventlog.toml": text})


def at(url: str, code: int, said: str) -> Mistake:
    return Mistake(code, said, ("status", "--database", url))


def call(code: int, said: str, *arguments: str, files: Files | None = None) -> Mistake:
    return Mistake(code, said, arguments, {"eventlog.toml": SOURCE, **(files or {})})


def csv(text: str | bytes, said: str, *more: str, name: str = "a.csv", code: int = 65) -> Mistake:
    words = tuple(name if word == "a.csv" else word for word in CONVERT)
    return Mistake(code, said, (*words, *more), {name: text, "s.json": SCHEMA})


def half_database() -> bytes:
    """The first page of a database that has two, as a full disk leaves it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE usr (idu INTEGER)")
        return connection.serialize()[:4096]


URLS = {
    "a password with @": in_file(
        '[source]\nurl = "postgresql+psycopg://idm:p@ss@127.0.0.1:1/app"\n',
        78,
        "has an @ in its user or password. Write it as %40",
    ),
    "a port in words": at("postgresql://idm@h:port/app", 78, "Its port is no number"),
    "a port too high": at("postgresql://idm@h:99999/app", 78, "The port in the database URL is above 65535."),
    "a URL of JDBC": at("jdbc:postgresql://h/app", 78, "It is one of JDBC."),
    "a path": at("app.db", 78, "A file of SQLite is written as sqlite:/// and its path."),
    "two slashes": at("sqlite://app.db", 78, "is written with three slashes"),
    "a folder": at("sqlite:///.", 78, "is a folder and no database file."),
    "a file that is not there": at("sqlite:///missing.db", 78, "There is no database file missing.db."),
    "a file of something else": Mistake(
        78, "x.db is no database file.", ("status", "--database", "sqlite:///x.db"), {"x.db": "hello" * 9}
    ),
    "half of a database": Mistake(
        69,
        "Restore the database file from a backup.",
        ("status", "--database", "sqlite:///x.db"),
        {"x.db": half_database()},
    ),
    "a spreadsheet": Mistake(
        78,
        "is a ZIP archive or a spreadsheet",
        ("status", "--database", "sqlite:///x.db"),
        {"x.db": b"PK\3\4" + bytes(90)},
    ),
    "capitals": at("PostgreSQL://idm@h/app", 78, "Did you mean postgresql?"),
    "a web address": at("http://localhost/app", 78, "eventlog does not know the database 'http'"),
    "quotes of a shell": at("'sqlite:///app.db'", 78, "leave out the quotes"),
    "nothing": at("", 78, "No database is named. Use --database URL"),
    "no database at all": Mistake(78, "No database is named. Use --database URL", ("status",)),
    "a folder that is not there": call(
        78,
        "There is no folder nowhere for the database file new.db. Make it",
        "install",
        "-d",
        "sqlite:///nowhere/new.db",
    ),
    "a misspelt database": at("orcale://h/app", 78, "Did you mean oracle?"),
    "a server that is not there": at(HOST, 75, "Connection refused. See that the server runs"),
    "a secret that nobody set": in_file(
        '[source]\nurl = "postgresql://u:${NOPE}@h/x"\n', 78, "the environment has no NOPE", command="status"
    ),
    "a secret in no file": in_file(
        '[source]\nurl = "postgresql://u:${file:/nope}@h/x"\n',
        78,
        "The secret file /nope cannot be read",
        command="status",
    ),
}
TOML = {
    "UTF-16": in_file((SOURCE + OUTPUT).encode("utf-16"), 78, "eventlog.toml is in UTF-16; save it as UTF-8."),
    "UTF-16 without a mark": in_file((SOURCE + OUTPUT).encode("utf-16-le"), 78, "is in UTF-16; save it as UTF-8."),
    "UTF-32": in_file((SOURCE + OUTPUT).encode("utf-32"), 78, "is in UTF-32; save it as UTF-8."),
    "Latin-1": in_file((SOURCE + 'log = "größe"\n').encode("latin-1"), 78, "is not UTF-8 in line 3; save it as UTF-8."),
    "a database": in_file(b"SQLite format 3\0" + bytes(90), 78, "is a SQLite database and no text."),
    "YAML": in_file("source:\n  url: x\n", 78, "TOML joins a key and its value by ="),
    "JSON": in_file('{"source": {"url": "x"}}', 78, "This looks like JSON"),
    "no quotes": in_file("[source]\nurl = sqlite:///app.db\n", 78, 'Write a text in quotes: url = "…".'),
    "a colon": in_file('[source]\nurl: "x"\n', 78, 'as in url = "…"'),
    "round quotes": in_file("[source]\nurl = “x”\n", 78, "Quotes are straight in TOML"),
    "a key twice": in_file(SOURCE + 'url = "x"\n', 78, "url is there twice in its section."),
    "a section twice": in_file(SOURCE + '[source]\nlog = "x"\n', 78, "[source] is there twice"),
    "a section in both ways": in_file(
        SOURCE + "[[source]]\n", 78, "[source] above and [[source]] here are two ways to write it"
    ),
    "a path of Windows": in_file(
        SOURCE + '[[output]]\nsink = "files"\npath = "C:\\out\\new"\n', 78, "write a path in single quotes"
    ),
    "a truth of Python": in_file(
        SOURCE + "[publisher]\nwake_up = True\n", 78, "Write wake_up = true or wake_up = false"
    ),
    "one bracket": in_file(SOURCE + '[output]\nsink = "files"\npath = "o"\n', 78, "output is written as [[output]]."),
    "slashes for a comment": in_file(SOURCE + "// what it is\n", 78, "A comment begins with # in TOML."),
    "slashes behind a value": in_file(SOURCE + "[publisher]\nbatch_size = 5 // some\n", 78, "A comment begins with #"),
    "a semicolon": in_file(SOURCE + "[publisher]\nbatch_size = 5;\n", 78, "A line has one key and its value"),
    "a list without commas": in_file(
        SOURCE + '[publisher]\ntime_of_day = ["02:00" "03:00"]\n', 78, "In a list there are commas"
    ),
    "a section that stays open": in_file("[source\nurl = 'x'\n", 78, "A section is written as [section]"),
    "a text that stays open": in_file('[source]\nurl = "x\n', 78, "A quote that opens in this line is not closed"),
    "a variable that stays open": in_file(
        SOURCE + '[[output]]\nsink = "files"\npath = "${HOME/o"\n', 78, "A variable is written as ${NAME}."
    ),
    "zeros in front": in_file(SOURCE + "[publisher]\nbatch_size = 05\n", 78, "no zeros in front: batch_size = 5."),
    "a comma in a number": in_file(
        SOURCE + "[publisher]\nquery_limit = 10,000\n", 78, "nothing between its digits: query_limit = 10000."
    ),
    "a number with a bare unit": in_file(
        SOURCE + "[publisher]\npolling_interval = 10s\n", 78, "without its unit: polling_interval = 10."
    ),
    "two signs of equality": in_file(SOURCE + "[publisher]\nbatch_size == 5\n", 78, "are joined by one =."),
    "an hour without quotes": in_file(
        SOURCE + "[publisher]\ntime_of_day = [02:00]\n", 78, "Write a time of day in quotes"
    ),
    "a section with one bracket too few": in_file(
        SOURCE + '[[output]\nsink = "files"\n', 78, "A section is written as [section], and an output as [[output]]."
    ),
    "a slash in a section": in_file(SOURCE + "[[out/put]]\n", 78, "A section is written as [section], and an output"),
    "an empty file": Mistake(
        78, "No database is named. Use --database URL or --config FILE", ("status",), {"eventlog.toml": ""}
    ),
    "a folder in its place, and no word": Mistake(
        78,
        "eventlog.toml cannot be read: Is a directory. Name a file that this user may read",
        (),
        {"eventlog.toml/x": ""},
    ),
    "no file": Mistake(78, "The configuration file nope.toml does not exist.", ("status", "--config", "nope.toml")),
    "a folder as file": Mistake(78, "file . cannot be read: Is a directory.", ("status", "--config", ".")),
}
KEYS = {
    "file for files": in_file(SOURCE + '[[output]]\nsink = "file"\npath = "o"\n', 78, "Did you mean files?"),
    "capitals of a sink": in_file(SOURCE + '[[output]]\nsink = "Kafka"\nservers = "o"\n', 78, "Did you mean kafka?"),
    "no sink": in_file(SOURCE + '[[output]]\npath = "o"\n', 78, "output[0] needs the key `sink`: database,"),
    "no path": in_file(SOURCE + '[[output]]\nsink = "files"\n', 78, "output[0] needs the key `path`."),
    "a path that nothing can have": in_file(
        SOURCE + '[[output]]\nsink = "files"\npath = "a\\u0000b"\n', 78, "and no path holds a NUL. Leave it out."
    ),
    "a certificate that is none": in_file(
        SOURCE + '[[output]]\nsink = "http"\nurl = "https://127.0.0.1:1/"\nca_file = "app.db"\n',
        78,
        "The output's certificates (ca_file app.db) cannot be used",
    ),
    "a certificate that is not there": in_file(
        SOURCE + '[[output]]\nsink = "http"\nurl = "https://127.0.0.1:1/"\nca_file = "no.pem"\n',
        78,
        "output.ca_file names no.pem, and there is no such file; correct the path.",
    ),
    "a certificate for an address without TLS": in_file(
        SOURCE + '[[output]]\nsink = "http"\nurl = "http://127.0.0.1:1/"\nca_file = "no.pem"\n',
        78,
        "output.ca_file is about TLS, and output.url begins with http://: it would be sent without. Write https://…,",
    ),
    "Parquet files of XDS": in_file(
        SOURCE + '[[output]]\nsink = "files"\npath = "o"\nfile_format = "parquet"\n',
        78,
        'output.file_format is about files of change tables, and output.format is "xds". Leave it out, or set format =',
    ),
    "CSV without a header of messages": in_file(
        SOURCE + '[[output]]\nsink = "files"\npath = "o"\nformat = "messages"\nrow_files.header = false\n',
        78,
        'output.row_files is about files of change tables, and output.format is "messages".',
    ),
    "a path of nothing": in_file(
        SOURCE + '[[output]]\nsink = "files"\npath = ""\n', 78, "output.path is empty. Name a folder"
    ),
    "a target that is not there": Mistake(
        75,
        "See that the server runs",
        ("run", "--once"),
        {"eventlog.toml": SOURCE + f'[[output]]\nsink = "database"\nformat = "change-tables"\nurl = "{HOST}"\n'},
    ),
    "no servers": in_file(SOURCE + '[[output]]\nsink = "kafka"\n', 78, "output[0] needs the key `servers`."),
    "a format of another": in_file(
        SOURCE + OUTPUT + 'format = "json"\n', 78, "output[0].format takes change-tables, cloudevents"
    ),
    "XDS into a database": in_file(
        SOURCE + '[[output]]\nsink = "database"\nurl = "sqlite:///t.db"\nformat = "xds"\n',
        78,
        "output[0].format takes change-tables.",
    ),
    "the publisher's key in the source": in_file(
        SOURCE + "batch_size = 5\n", 78, "source.batch_size is not a key. It is a key of [publisher]."
    ),
    "an output's key in the publisher": in_file(SOURCE + '[publisher]\npath = "o"\n', 78, "It is a key of [[output]]."),
    "the source's key in the publisher": in_file(
        SOURCE + '[publisher]\ntables = ["usr"]\n', 78, "It is a key of [source]."
    ),
    "the source's key in an output": in_file(SOURCE + OUTPUT + 'tables = ["usr"]\n', 78, "It is a key of [source]."),
    "the publisher's key in an output": in_file(
        SOURCE + OUTPUT + "polling_interval = 5\n", 78, "It is a key of [publisher]."
    ),
    "a key of another sink": in_file(
        SOURCE + OUTPUT + 'servers = "a:1"\n', 78, 'It is a key of an output with sink = "kafka".'
    ),
    "a key above all sections": in_file(
        'url = "sqlite:///app.db"\n', 78, "url is above all sections. It is a key of [source]."
    ),
    "a sink above all sections": in_file(
        'sink = "files"\n' + SOURCE, 78, "sink is above all sections. It is a key of [[output]]."
    ),
    "a misspelt key": in_file(SOURCE + "[publisher]\nbatchsize = 5\n", 78, "Did you mean batch_size?"),
    "a misspelt section": in_file("[sorce]\n", 78, "Did you mean source?"),
    "a misspelt kind": in_file('[source]\nkind = "gbasse"\n', 78, "Did you mean gbase?"),
    "a number in words": in_file(
        SOURCE + '[publisher]\nbatch_size = "many"\n', 78, "publisher.batch_size takes a whole number, not a text."
    ),
    "a number with a unit": in_file(
        SOURCE + '[publisher]\npolling_interval = "10s"\n', 78, "takes a whole number, not a text."
    ),
    "a number too high": in_file(SOURCE + "[publisher]\nbatch_size = 1000\n", 78, "it must be between 1 and 128."),
    "a number too low": in_file(SOURCE + "[publisher]\npolling_interval = 0\n", 78, "it must be between 1 and 604800."),
    "a number with a point": in_file(
        SOURCE + "[publisher]\npolling_interval = 0.5\n", 78, "takes a whole number, not a number with a point."
    ),
    "an hour too high": in_file(SOURCE + '[publisher]\ntime_of_day = ["25:00"]\n', 78, "'25:00' is not a time of day"),
    "an hour of twelve": in_file(
        SOURCE + '[publisher]\ntime_of_day = ["2am"]\n', 78, "it is written as 02:00 or 14:30:15."
    ),
    "another word": in_file(SOURCE + '[publisher]\non_retry = "wait"\n', 78, "publisher.on_retry takes object, stop."),
    "a zone without its continent": in_file(SOURCE + 'clock = "Moscow"\n' + OUTPUT, 78, "Did you mean Europe/Moscow?"),
    "a log that is not there": in_file(
        SOURCE + 'log = "nolog"\n' + OUTPUT, 78, "`eventlog install --log nolog` makes it."
    ),
    "an address without a scheme": in_file(
        SOURCE + '[[output]]\nsink = "http"\nurl = "localhost:8080"\n', 78, "it is http://… or https://…."
    ),
    "an output twice": in_file(SOURCE + OUTPUT + OUTPUT, 78, "each needs a place of its own."),
    "a path of a shell": in_file(
        SOURCE + '[[output]]\nsink = "files"\npath = "~/o"\n', 78, "only a shell knows what ~"
    ),
    "a variable of a shell": in_file(
        SOURCE + '[[output]]\nsink = "files"\npath = "$HOME/o"\n', 78, "a variable as ${HOME}."
    ),
    "a broker's web address": in_file(
        SOURCE + '[[output]]\nsink = "kafka"\nservers = "http://h:9092"\n', 78, "brokers are written as HOST:PORT"
    ),
    "brokers with semicolons": in_file(
        SOURCE + '[[output]]\nsink = "kafka"\nservers = "a:9092;b:9092"\n', 78, "write HOST:PORT,HOST:PORT."
    ),
    "one slash": in_file(
        SOURCE + '[[output]]\nsink = "files"\npath = "s3:/bucket/x"\n', 78, "Write s3://BUCKET/PREFIX, or ./s3:/"
    ),
    "a file as folder": Mistake(
        69,
        "out is a file, and a folder must be there.",
        ("run", "--once"),
        {"eventlog.toml": SOURCE + OUTPUT, "out": ""},
    ),
    "a database as kind": in_file('[source]\nkind = "mysql"\n', 78, "Which database it is says source.url"),
    "a key of the page": in_file(SOURCE + "[web]\nport = 5\n", 78, "web.port is not a key."),
}
ROWS = {
    "hold of a row that is not there": call(0, "none of these waits: there is no row 999 in event_log.", "hold", "999"),
    "hold of what is published": call(0, "none of these waits: row 1 has the status S.", "hold", "1"),
    "hold of a range": call(0, "none of these waits: 7-9 has none.", "hold", "7-9"),
    "hold of a word": call(64, "'abc' is no record_id; write numbers and ranges", "hold", "abc"),
    "hold of nothing": call(64, "Missing argument 'IDS...'.", "hold"),
    "a range backwards": call(64, "The range 9-3 runs backwards; write 3-9.", "hold", "9-3"),
    "release of a row that is not there": call(0, "none of these is held: there is no row 999", "release", "999"),
    "release of what waits": call(0, "none of these is held: row 2 waits.", "release", "2"),
    "release of nothing": call(64, "their numbers, or --all.", "release"),
    "requeue of a row that is not there": call(0, "No such row was processed: there is no row 999", "requeue", "999"),
    "requeue of what waits": call(0, "No such row was processed: row 2 waits.", "requeue", "2"),
    "requeue of nothing": call(64, "their numbers, or --status E.", "requeue"),
    "requeue of N": call(64, "it takes S, W, E, F.", "requeue", "--status", "N"),
    "requeue of small letters": call(
        64, "--status e cannot be meant here; did you mean E?", "requeue", "--status", "e"
    ),
    "a status in a word": call(64, "'error' is a word, and --status takes letters", "log", "--status", "error"),
    "a key without its column": call(0, "A key is written with its column, as idu=7.", "log", "--key", "1"),
    "explain of a row that is not there": call(65, "The event log event_log has no row 999.", "explain", "999"),
    "explain of a table": call(64, "'usr' is not a whole number.", "explain", "usr"),
    "a table that no row names": call(0, "No row of the log is about uzr. Did you mean usr?", "log", "--table", "uzr"),
    "a day in words": call(64, "'yesterday' is no time and no age", "log", "--since", "yesterday"),
    "another log": call(78, "There is no event log nolog in this database.", "log", "--log", "nolog"),
    "purge without an age": call(64, "Missing option '--older-than'.", "purge"),
    "an age in words": call(
        64, "'soon' is no age; write a number with s, m, h, d or w", "purge", "--older-than", "soon"
    ),
    "an output that is none": call(
        64,
        "'nope' is no output of the configuration.",
        "outputs",
        "pause",
        "nope",
        files={"eventlog.toml": SOURCE + OUTPUT},
    ),
    "explain of a fraction": call(64, "'1.5' is not a whole number.", "explain", "1.5"),
    "a limit of nothing": call(64, "0 is not between 1 and 1000000000.", "log", "--limit", "0"),
    "CSV that never ends": call(64, "--csv is for rows that are there.", "log", "--csv", "--follow"),
    "a day that there is not": call(64, "'2026-13-01' is no time and no age", "log", "--since", "2026-13-01"),
    "a reason that is none": call(64, "Did you mean 'published'?", "log", "--reason", "publishd"),
    "an age without a unit": call(
        64, "'30' is no age; write a number with s, m, h, d or w", "purge", "--older-than", "30"
    ),
    "purge where nobody can be asked": call(64, "use --yes to do it.", "purge", "--older-than", "0s"),
    "purge into a file": call(
        64, "Directory 'kept' is a file.", "purge", "--older-than", "0s", "--archive", "kept", files={"kept": ""}
    ),
    "pause of nothing": call(64, "Missing argument 'NAME'.", "outputs", "pause"),
    "a command of outputs": call(64, "stop is not a command. There are forget, list, pause", "outputs", "stop"),
}
TABLES = {
    "track of a table that is not there": call(78, "Did you mean usr?", "track", "uzr"),
    "track without a key": call(78, "nokey has no primary key", "track", "nokey"),
    "track of a column": call(
        64, "usr has no column fnam outside its key; it has fname.", "track", "usr", "--columns", "fnam"
    ),
    "track of the log": call(78, "tracking it would never end.", "track", "event_log"),
    "track with a style": call(64, "Did you mean 'row-back'?", "track", "usr", "--events", "rowback"),
    "track where nothing can be written": call(
        78,
        "See that this user may write the database file",
        *("track", "usr", "--no-config", "-d", "sqlite:///file:app.db?mode=ro&uri=true"),
    ),
    "a condition that is none": call(78, "cannot be asked of usr", "track", "usr", "--when", "fname ="),
    "untrack of another": call(78, "uzr is not tracked for event_log.", "untrack", "uzr"),
    "refresh of a table that is not there": call(78, "Did you mean usr?", "refresh", "uzr"),
    "refresh with a column": call(64, "no such column: nope.", "refresh", "usr", "--where", "nope = 1"),
    "catalog of another": call(78, "Did you mean usr?", "catalog", "uzr"),
    "install over a table": call(78, "The log table usr has no column record_id.", "install", "--log", "usr"),
    "uninstall of another": call(78, "There is no event log nolog in this database.", "uninstall", "--log", "nolog"),
    "rights in a file": call(64, "sqlite has no roles", "rights"),
    "track of no table": call(78, "No table with a key matches x*.", "track", "x*"),
    "track without anything": call(
        64, "nothing of usr is watched; leave out fewer.", "track", "usr", "--columns", "fname", "--exclude", "fname"
    ),
    "uninstall where nobody can be asked": call(64, "of which 1 waits", "uninstall", "--purge"),
    "verify of an output that is none": call(
        64, "'nope' is no output of the configuration.", "verify", "--output", "nope"
    ),
    "verify without an output": call(64, "Say with --output which output is compared", "verify"),
    "a port too high for the page": call(78, "it is written as 127.0.0.1:9187.", "web", "--http", "localhost:99999"),
    "a port in words for the page": call(64, "'abc' is not a whole number.", "web", "--port", "abc"),
    "a port above all for the page": call(64, "70000 is not between 0 and 65535.", "web", "--port", "70000"),
    "a name that no machine has": call(
        78,
        "No machine has that name: choose",
        "web",
        "--http",
        "nohost.invalid:9187",
        files={"eventlog.toml": SOURCE + '[web]\ntoken = "0123456789abcdef"\n'},
    ),
    # In whose words depends on click's version.
    "one of several options": call(64, "--http", "web", "--host", "x"),
    "an address that this machine does not have": call(
        78, "This machine does not have that address", "receive", "--host", "192.0.2.1"
    ),
    "a level that is none": call(64, "'verbose' is not one of 'debug'", "run", "--once", "--log-level", "verbose"),
    "an option without its value": call(
        64, "'--config' requires an argument. See `eventlog status --help`.", "status", "--config"
    ),
    "an option before its command": call(
        64, "Options of a command come after it.", "--config", "eventlog.toml", "status"
    ),
    "one hyphen": call(64, "Did you mean --json?", "status", "-json"),
    "two words for one": call(64, "Did you mean outputs?", "out-puts"),
    "help of a command that is none": call(64, "statsu is not a command. Did you mean status?", "help", "statsu"),
    "a misspelt command": call(64, "statu is not a command. Did you mean status?", "statu"),
    "an option as a command": call(64, "version is not a command. Did you mean --version?", "version"),
    "verify against a file": call(78, "A file of SQLite is written as sqlite:///", "verify", "--against", "app.db"),
    "a misspelt option": call(64, "Did you mean", "status", "--databse", "x"),
    "a first file twice": call(64, "eventlog.toml exists already.", "init"),
    "a shell that is none": call(64, "Did you mean 'zsh'?", "completion", "ksh"),
}
FILES = {
    "semicolons": csv((HEADER + ROW).replace(",", ";"), "its columns are parted by semicolons, and CSV has commas."),
    "tabs": csv((HEADER + ROW).replace(",", "\t"), "its columns are parted by tabs, and CSV has commas."),
    "CSV in UTF-16": csv((HEADER + ROW).encode("utf-16"), "a.csv is in UTF-16; save it as UTF-8."),
    "CSV in Latin-1": csv((HEADER + ROW.replace("b\n", "ü\n")).encode("latin-1"), "line 2: the text is not UTF-8."),
    "no header": csv(ROW, "a.csv has no column record_id"),
    "columns that are missing": csv("record_id,status,event_type\n1,N,6\n", "has no column event_time, perpetrator"),
    "an empty file": csv("", "has no header line. Its first line names the ten columns."),
    "a spreadsheet as CSV": csv(b"PK\3\4" + bytes(90), "a.csv is a ZIP archive or a spreadsheet and no text."),
    "a spreadsheet by its name": csv(b"PK\3\4", "give it the ending of its form.", name="a.xlsx", code=64),
    "a quote that stays open": csv(HEADER + ROW.replace("fname,a", 'fname,"a'), "a quote that opens here is never closed."),
    "too many fields": csv(HEADER + ROW.replace("b\n", "b,c\n"), "there are 11 fields, and the header line names 10."),
    "lines in UTF-16": csv('{"record_id": 1}\n'.encode("utf-16"), "a.jsonl is in UTF-16; save it as UTF-8.", name="a.jsonl"),
    "an array of JSON": csv('[{"record_id": 1}]\n', "Each line holds one JSON object", name="a.jsonl"),
    "no input": Mistake(65, "There is no .parquet, .jsonl or .csv file at", CONVERT, {"s.json": SCHEMA}),
    "no schema": Mistake(65, "s.json cannot be read: No such file or directory.", CONVERT, {"a.csv": HEADER + ROW}),
    "a schema in UTF-16": Mistake(65, "s.json is in UTF-16; save it as UTF-8.", CONVERT, {"a.csv": HEADER + ROW, "s.json": SCHEMA.encode("utf-16")}),
    "a schema that is none": Mistake(65, "s.json is not a schema file", CONVERT, {"a.csv": HEADER + ROW, "s.json": "hello"}),
    "a folder with something": Mistake(64, "x is not empty. Choose another folder", CONVERT, {"a.csv": HEADER + ROW, "s.json": SCHEMA, "x/y": "1"}),
    "a format that is none": csv(HEADER + ROW, "'xml' is not one of 'xds', 'change-tables', 'messages'.", "--to", "xml", code=64),
    "a stream that is a text": Mistake(65, "and only 66 is defined.", ("decode", "gbase", "a.bin"), {"a.bin": "hello world, this is no stream"}),
    "a queue in UTF-16": Mistake(65, "the file is in UTF-16; save it as UTF-8.", ("decode", "linter", "a.jsonl"), {"a.jsonl": '{"a": 1}\n'.encode("utf-16")}),
    "an operation that is none": Mistake(65, "'x' is no operation; there are delete, insert", ("emulate", "linter", "a.jsonl"), {"a.jsonl": '{"op": "x"}\n'}),
    "no stream": Mistake(65, "nope.bin cannot be read: No such file or directory.", ("decode", "gbase", "nope.bin")),
    "no stream to convert": Mistake(65, "There is no file at nope.bin", ("convert", "gbase", "nope.bin", "--out", "x", "--key", "usr=idu")),
    "a folder as another driver's file": Mistake(
        65, "drivers cannot be read: Is a directory.", ("init", "--driver", "drivers"), {"drivers/x.xml": ""}
    ),
    "no file of another driver": Mistake(65, "nope.xml cannot be read: No such file", ("init", "--driver", "nope.xml")),
    "no row that can be read": csv(HEADER + ROW.replace("idu=1", "idu"), "1 row", "--engine", "local[1]"),
    "no row that can be read, which is allowed": csv(
        HEADER + ROW.replace("idu=1", "idu"), "1 row", "--engine", "local[1]", "--no-strict", code=0
    ),
    "a folder as output": csv(HEADER + ROW, "A folder is named by --out.", "--output", "documents", code=64),
    "an empty Parquet file": csv(b"", "a.parquet cannot be read: Parquet file size is 0 bytes.", name="a.parquet"),
    "a text as Parquet": csv("hello", "a.parquet cannot be read: Parquet file size is 5 bytes", name="a.parquet"),
    "an empty schema": Mistake(65, "`eventlog catalog` writes such a file.", CONVERT, {"a.csv": HEADER + ROW, "s.json": ""}),
    "a folder as schema": Mistake(65, "s.json cannot be read: Is a directory.", CONVERT, {"a.csv": HEADER + ROW, "s.json/x": ""}),
    "a misspelt key of a schema": Mistake(
        65, "tables[0].columns[0].kye is not a key. Did you mean key?", CONVERT, {"a.csv": HEADER + ROW, "s.json": SCHEMA.replace('"key"', '"kye"')}
    ),
    "the input as output": csv(HEADER + ROW, "a.csv is not a folder; the output goes into one of its own.", "--out", "a.csv", code=64),
    "an engine that is none": csv(HEADER + ROW, "'spak' is none of auto, spark, local", "--engine", "spak", code=64),
    "no output": Mistake(64, "Missing option '--out'.", ("convert", "files", "a.csv"), {"a.csv": HEADER + ROW}),
    "a database without a log": call(78, "There is no event log nolog in this database.", "convert", "database", "sqlite:///app.db", "--log", "nolog", "--out", "x", "--engine", "local"),
    "a key without its columns": Mistake(
        64, "--key usr is not written as NAME=VALUE", ("convert", "gbase", "a.bin", "--out", "x", "--key", "usr"), {"a.bin": "abc"}
    ),
    "a folder to emulate into": Mistake(69, "It is a folder: name a file.", ("emulate", "gbase", "--rows", "5", "--out", ".")),
    "a folder as document": Mistake(65, "the file cannot be read: Is a directory.", ("validate", ".")),
    "a page as document": Mistake(65, "a document is <nds>, <input> or <output>, not <html>.", ("validate", "a.xml"), {"a.xml": "<html/>"}),
    "an empty file of another driver": Mistake(65, "document is empty", ("init", "--driver", "d.xml"), {"d.xml": ""}),
    "a first file in no folder": Mistake(69, "See that it is there, and its folder.", ("init", "nowhere/e.toml", "--database", "sqlite:///app.db")),
    "a demo in a full folder": Mistake(64, "the demo needs an empty folder.", ("demo", "--keep", "kept"), {"kept/x": ""}),
    "no document": Mistake(65, "the file cannot be read: No such file or directory.", ("validate", "nope.xml")),
    "a document that is a text": Mistake(65, "this is not well-formed XML", ("validate", "a.xml"), {"a.xml": "hello"}),
}  # fmt: skip
VARIABLES = {
    "a misspelt section": ("EVENTLOG_PUBLISHR__BATCH_SIZE", "5", "publishr is not a section. Did you mean publisher?"),
    "a misspelt key": (
        "EVENTLOG_PUBLISHER__BATCHSIZE",
        "5",
        "publisher.batchsize is not a key. Did you mean batch_size?",
    ),
    "a number in words": ("EVENTLOG_PUBLISHER__BATCH_SIZE", "many", "publisher.batch_size takes a whole number"),
    "a file that is not there": ("EVENTLOG_CONFIG", "nope.toml", "The configuration file nope.toml does not exist."),
    "one underscore": ("EVENTLOG_SOURCE_URL", "sqlite:///app.db", "EVENTLOG_SOURCE__URL, not EVENTLOG_SOURCE_URL."),
}
MISTAKES = {
    f"{kind}: {name}": mistake
    for kind, some in {"url": URLS, "toml": TOML, "key": KEYS, "row": ROWS, "table": TABLES, "file": FILES}.items()
    for name, mistake in some.items()
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a log, a tracked table, a row that is published and one that waits."""
    folder = tmp_path_factory.mktemp("made")
    database = folder / "app.db"
    where = ("--database", f"sqlite:///{database}", "--no-config")
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript("CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname TEXT); CREATE TABLE nokey (a TEXT)")
    assert exit_code(["install", *where]) == 0
    assert exit_code(["track", "usr", *where]) == 0
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(
            "INSERT INTO usr VALUES (1, 'a'); UPDATE event_log SET status = 'S'; UPDATE usr SET fname = 'b'"
        )
    return database


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_what_to_do(
    name: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mistake = MISTAKES[name]
    for variable in ("EVENTLOG_CONFIG", "EVENTLOG_DATABASE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    if any("app.db" in str(text) for text in mistake.files.values()):
        shutil.copy(made, "app.db")
    for file, text in mistake.files.items():
        path = Path(file)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    code = exit_code([*mistake.arguments])
    captured = capsys.readouterr()
    words = " ".join((captured.out + captured.err).split())
    assert (code, mistake.said in words) == (mistake.code, True), words
    assert "Traceback" not in words
    assert "fault of eventlog" not in words


@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_is_named_with_what_to_do(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    variable, value, said = VARIABLES[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVENTLOG_DATABASE", raising=False)
    monkeypatch.setenv(variable, value)
    code = exit_code(["status"])
    assert (code, said in capsys.readouterr().err) == (78, True)


def test_a_variable_of_another_program_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENTLOG_XYZ__KEY", "1")
    monkeypatch.chdir(tmp_path)
    assert exit_code(["config", "--no-config"]) == 0


def test_there_are_two_hundred_of_them() -> None:
    assert len(MISTAKES) >= 200
