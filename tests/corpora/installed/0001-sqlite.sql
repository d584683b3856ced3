BEGIN;

CREATE TABLE event_log_version (
    version_num VARCHAR(32) NOT NULL, 
    CONSTRAINT event_log_version_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 0001

CREATE TABLE event_log (
    record_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
    table_key TEXT NOT NULL, 
    status CHAR(1) DEFAULT 'N' NOT NULL, 
    event_type INTEGER NOT NULL, 
    event_time DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')) NOT NULL, 
    perpetrator TEXT, 
    table_name TEXT NOT NULL, 
    column_name TEXT, 
    old_value TEXT, 
    new_value TEXT, 
    CONSTRAINT event_log_id_ck CHECK (record_id > 0), 
    CONSTRAINT event_log_status_ck CHECK (status = 'N' OR (LENGTH(status) = 1 AND status <> ' ' AND status = UPPER(status))), 
    CONSTRAINT event_log_type_ck CHECK (event_type BETWEEN 1 AND 8), 
    CONSTRAINT event_log_column_ck CHECK (column_name IS NOT NULL OR event_type BETWEEN 4 AND 6)
);

CREATE INDEX event_log_new ON event_log (record_id) WHERE status = 'N';

CREATE TABLE event_log_outcome (
    record_id INTEGER NOT NULL, 
    status CHAR(1), 
    reason VARCHAR(40), 
    note TEXT, 
    attempts INTEGER DEFAULT 0 NOT NULL, 
    next_attempt DATETIME, 
    document VARCHAR(200), 
    held INTEGER DEFAULT 0 NOT NULL, 
    settled_at DATETIME, 
    PRIMARY KEY (record_id)
);

CREATE TABLE event_log_mark (
    name VARCHAR(200) NOT NULL, 
    value TEXT, 
    PRIMARY KEY (name)
);

INSERT INTO event_log_version (version_num) VALUES ('0001');

COMMIT;

