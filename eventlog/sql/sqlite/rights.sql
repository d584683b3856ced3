-- SQLite has neither roles nor rights: who can write the file can do everything. The names are those of the other databases.

-- role_at_host: none

-- guard_function: triggers have no functions

-- installer_on_schema: none

-- installer_on_log: none

-- installer_on_standing_log: none

-- installer_on_companion: none

-- installer_on_place: none

-- installer_on_table: none

-- owner_on_log: none

-- writer_on_log: none

-- writer_on_companion: none

-- publisher_on_schema: none

-- publisher_on_log: none

-- publisher_on_companion: none

-- publisher_on_version: none

-- publisher_on_place: none

-- publisher_on_table: none

-- table_owner: none

-- held_rights: none
