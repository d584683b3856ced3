#!/bin/sh
# Makes the folder of data when there is none, with MARIADB_DATABASE, MARIADB_ROOT_PASSWORD and the folder of SQL files; then serves it.
set -eu
data=/var/lib/mysql
if [ ! -d "$data/mysql" ]; then
    install --directory --owner=mysql --group=mysql --mode=700 "$data" /run/mysqld
    mariadb-install-db --user=mysql --datadir="$data" --auth-root-authentication-method=normal >/dev/null
    {
        echo "CREATE DATABASE $MARIADB_DATABASE; USE $MARIADB_DATABASE;"
        cat /docker-entrypoint-initdb.d/*.sql 2>/dev/null || :
        echo ";CREATE OR REPLACE USER root@'%' IDENTIFIED BY '$MARIADB_ROOT_PASSWORD';"
        echo "GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;"
        echo "ALTER USER root@localhost IDENTIFIED BY '$MARIADB_ROOT_PASSWORD';"
    } >/tmp/first.sql
    mariadbd --user=mysql --datadir="$data" --skip-networking &
    until mariadb-admin ping >/dev/null 2>&1; do sleep 0.2; done
    mariadb </tmp/first.sql
    mariadb-admin --password="$MARIADB_ROOT_PASSWORD" shutdown
    wait
fi
install --directory --owner=mysql --group=mysql --mode=755 /run/mysqld
[ "$1" != mariadbd ] || shift
exec mariadbd --user=mysql --datadir="$data" --bind-address=0.0.0.0 "$@"
