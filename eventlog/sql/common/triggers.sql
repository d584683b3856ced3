-- What triggers are made of.

-- present: whether there is a value
/* value */n.fname IS NOT NULL;

-- absent: whether there is none
/* value */n.fname IS NULL;

-- holds: whether the row is one that the condition is about
EXISTS (SELECT 1 FROM (SELECT /* columns */NEW.idu) AS /* row */usr WHERE /* condition */(1 = 1));

-- parent_is_there: whether the parent of a child row is there, and one that the condition is about
EXISTS (SELECT 1 FROM /* parent */usr AS /* row */usr WHERE /* match */(usr.idu = OLD.idu) AND /* condition */(1 = 1));

-- stands: whether there are rows with this key, and some that the condition is about; without AS, which Oracle does not read
EXISTS (SELECT 1 FROM /* parent */usr /* row */usr WHERE /* match */(usr.idu = OLD.idu) AND /* condition */(1 = 1));

-- drop_trigger: takes a trigger off
DROP TRIGGER IF EXISTS /* trigger */event_log_usr_insert;
