#!/bin/sh
# Makes the cluster when there is none, with POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB and the folder of SQL files; then serves it.
set -eu
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
data=/var/lib/postgresql/data
user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }

if [ ! -s "$data/PG_VERSION" ]; then
    install --directory --owner=postgres --group=postgres --mode=700 "$data"
    printf '%s\n' "$POSTGRES_PASSWORD" >/tmp/password
    chown postgres /tmp/password
    as_postgres initdb --pgdata="$data" --username="$user" --pwfile=/tmp/password --auth-local=trust \
        --auth-host=scram-sha-256 --encoding=UTF8
    rm /tmp/password
    echo "host all all all ${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}" >>"$data/pg_hba.conf"
    # Nobody may reach it before its tables are there.
    as_postgres pg_ctl --pgdata="$data" --options="-c listen_addresses=" --wait start
    [ "$database" = postgres ] || as_postgres createdb --username="$user" "$database"
    for file in /docker-entrypoint-initdb.d/*.sql; do
        [ ! -f "$file" ] || as_postgres psql --username="$user" --set=ON_ERROR_STOP=1 --file=- "$database" <"$file"
    done
    as_postgres pg_ctl --pgdata="$data" --mode=fast --wait stop
    echo 'PostgreSQL init process complete; ready for start up.'
fi
[ "$1" != postgres ] || shift
exec setpriv --reuid=postgres --regid=postgres --init-groups postgres -D "$data" -c listen_addresses='*' "$@"
