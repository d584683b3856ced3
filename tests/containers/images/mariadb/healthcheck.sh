#!/bin/sh
# Whether the server takes connections over the network, which it does only once it is made.
exec mariadb-admin --protocol=tcp --host=127.0.0.1 --user=root --password="$MARIADB_ROOT_PASSWORD" ping
