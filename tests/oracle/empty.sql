-- The empty text as Oracle has it: no expression gives one, no row keeps one, and a text joined
-- to NULL is that text.
-- What stands in `shims` comes before PostgreSQL's own.

CREATE FUNCTION shims.joined(one text, other text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$SELECT nullif(coalesce(one, '') OPERATOR(pg_catalog.||) coalesce(other, ''), '')$$;
CREATE OPERATOR shims.|| (FUNCTION = shims.joined, LEFTARG = text, RIGHTARG = text);

CREATE FUNCTION shims.rtrim(written text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$SELECT nullif(pg_catalog.rtrim(written), '')$$;
CREATE FUNCTION shims.rtrim(written bpchar) RETURNS text LANGUAGE sql IMMUTABLE
AS $$SELECT nullif(pg_catalog.rtrim(written::text), '')$$;
CREATE FUNCTION shims.replace(written text, found text, put text)
RETURNS text LANGUAGE sql IMMUTABLE
AS $$SELECT nullif(pg_catalog.replace(written, found, coalesce(put, '')), '')$$;
CREATE FUNCTION shims.replace(written text, found text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$SELECT nullif(pg_catalog.replace(written, found, ''), '')$$;
CREATE FUNCTION shims.regexp_replace(written text, pattern text, put text)
RETURNS text LANGUAGE sql IMMUTABLE
AS $$SELECT nullif(pg_catalog.regexp_replace(written, pattern, coalesce(put, ''), 'g'), '')$$;

CREATE FUNCTION shims.without_empty() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW := jsonb_populate_record(NEW, (
    SELECT jsonb_object_agg(key, CASE WHEN value IN ('""', '"\\x"') THEN 'null' ELSE value END)
    FROM jsonb_each(to_jsonb(NEW))));
  RETURN NEW;
END $$;
