-- What ora2pg leaves as Oracle's and orafce does not have, by the words of Oracle's manual: the least that triggers use.

CREATE SCHEMA shims;
CREATE SCHEMA utl_raw;
CREATE SCHEMA utl_encode;

CREATE FUNCTION shims.sys_context(namespace text, parameter text) RETURNS text LANGUAGE sql STABLE
AS $$SELECT CASE WHEN namespace = 'USERENV' AND parameter = 'SESSION_USER' THEN session_user::text END$$;

-- Text minimal: no padding, and no zero before the point.
CREATE FUNCTION shims.to_char(number numeric, format text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$SELECT CASE WHEN format = 'TM9' THEN regexp_replace(trim_scale(number)::text, '^(-?)0\.', '\1.') END$$;
CREATE FUNCTION shims.to_char(number integer, format text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$SELECT shims.to_char(number::numeric, format)$$;
CREATE FUNCTION shims.to_char(number bigint, format text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$SELECT shims.to_char(number::numeric, format)$$;
CREATE FUNCTION shims.to_char(number numeric, format text, nls text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$SELECT CASE WHEN nls = 'NLS_NUMERIC_CHARACTERS=''.,''' THEN shims.to_char(number, format) END$$;

-- PostgreSQL's own format has microseconds; the calendar is the only one it has.
CREATE FUNCTION shims.to_char(moment timestamp, format text, nls text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$SELECT CASE WHEN nls = 'NLS_CALENDAR=GREGORIAN'
THEN pg_catalog.to_char(moment, replace(format, 'FF9', 'US"000"')) END$$;

CREATE FUNCTION shims.bytes_of(written text) RETURNS bytea LANGUAGE sql IMMUTABLE
AS $$SELECT convert_to(written, 'UTF8')$$;
CREATE FUNCTION utl_raw.cast_to_varchar2(bytes bytea) RETURNS text LANGUAGE sql IMMUTABLE
AS $$SELECT convert_from(bytes, 'UTF8')$$;

-- Lines of 64 characters that end with CR LF, except the last.
CREATE FUNCTION utl_encode.base64_encode(bytes bytea) RETURNS bytea LANGUAGE sql IMMUTABLE
AS $$SELECT convert_to(rtrim(regexp_replace(replace(encode(bytes, 'base64'), E'\n', ''), '(.{64})', E'\\1\r\n', 'g'),
E'\r\n'), 'UTF8')$$;
