"""What a row costs the more of it there is: of rows, of objects, of columns, of tables, of characters."""
