CREATE TABLE event_log_version (
    version_num VARCHAR(32) NOT NULL, 
    CONSTRAINT event_log_version_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 0001

CREATE TABLE event_log (
    record_id BIGINT NOT NULL AUTO_INCREMENT, 
    table_key VARCHAR(4000) NOT NULL, 
    status CHAR(1) NOT NULL DEFAULT 'N', 
    event_type INTEGER NOT NULL, 
    event_time DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)), 
    perpetrator VARCHAR(400), 
    table_name VARCHAR(400) NOT NULL, 
    column_name VARCHAR(400), 
    old_value LONGTEXT, 
    new_value LONGTEXT, 
    PRIMARY KEY (record_id), 
    CONSTRAINT event_log_status_ck CHECK (status = 'N' OR (LENGTH(status) = 1 AND status <> ' ' AND status = UPPER(status))), 
    CONSTRAINT event_log_type_ck CHECK (event_type BETWEEN 1 AND 8), 
    CONSTRAINT event_log_column_ck CHECK (column_name IS NOT NULL OR event_type BETWEEN 4 AND 6)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX event_log_new ON event_log (status, record_id);

CREATE TABLE event_log_outcome (
    record_id BIGINT NOT NULL, 
    status CHAR(1), 
    reason VARCHAR(40), 
    note LONGTEXT, 
    attempts INTEGER NOT NULL DEFAULT 0, 
    next_attempt DATETIME(6), 
    document VARCHAR(200), 
    held INTEGER NOT NULL DEFAULT 0, 
    settled_at DATETIME(6), 
    PRIMARY KEY (record_id)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE event_log_mark (
    name VARCHAR(200) NOT NULL, 
    value LONGTEXT, 
    PRIMARY KEY (name)
)ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;

INSERT INTO event_log_version (version_num) VALUES ('0001');

