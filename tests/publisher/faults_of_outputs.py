"""Faults about outputs that come and go, and of formats that fail; faults.py has the others."""

from __future__ import annotations

from tests.publisher.fault import CARE, JOURNAL, LETTERS, MEMORY, TARGET, WRITING, JournalFault

OF_OUTPUTS = [
    JournalFault(
        "what is said later is forgotten",
        JOURNAL,
        'for status, former in ((Status.ERROR, "SWSSS"), (Status.WARNING, "SSSSS")):',
        'for status, former in ((Status.WARNING, "SSSSS"),):',
    ),
    JournalFault(
        "what waits for a later answer is told before its rows have gone everywhere",
        "late.py",
        "            if waiting.keys().isdisjoint(answer.records):\n",
        "            if True:\n",
    ),
    # outputs that come and go
    JournalFault(
        "a new output begins at 0",
        MEMORY,
        "position=self.last_batch if foremost is None else foremost.position",
        "position=0",
    ),
    JournalFault(
        "a new output begins at the last batch",
        MEMORY,
        "position=self.last_batch if foremost is None else foremost.position",
        "position=self.last_batch",
    ),
    JournalFault(
        "a new output does not get what is parked",
        WRITING,
        '        self.execute("parked_copy", [{"name": name, "former": foremost.name}])\n',
        "",
    ),
    JournalFault(
        "a new output does not get what is planned",
        WRITING,
        "waiting = sorted(objects.items())",
        "waiting = sorted({**{}}.items())",
    ),
    JournalFault(
        "a forgotten output is waited for",
        CARE,
        "                journal.finish_rows(name, over, warn_of_given_up(lacking_rows, Reason.FORGOTTEN, note))\n",
        "                pass\n",
    ),
    JournalFault(
        "a forgotten output keeps its rows",
        CARE,
        'for query in ("planned_forget", "parked_forget", "answer_forget", "association_forget"):',
        'for query in ("planned_forget", "answer_forget", "association_forget"):',
    ),
    JournalFault("the lock is taken with any configuration", "publisher/places.py", "if not missing:", "if True:"),
    JournalFault(
        "a paused place keeps others from the lock", "publisher/places.py", "and row.paused is None and", "and"
    ),
    JournalFault(
        "what others got of a forgotten output is given up",
        LETTERS,
        "in (Reason.FILTERED, Reason.FORGOTTEN)]",
        "is Reason.FILTERED]",
    ),
    JournalFault(
        "who does not know the tables names objects",
        CARE,
        "return dict.fromkeys(super().objects(numbers), EVERY_ROW)",
        "return super().objects(numbers)",
    ),
    # formats that fail
    JournalFault(
        "a value that a format fails with ends the turn",
        "publisher/encode.py",
        (
            "        except Exception as error:  # noqa: BLE001  # a format may come from anywhere\n"
            "            refuse_fault(error)\n"
        ),
        "        except ValueError:\n            raise\n",
    ),
    JournalFault(
        "a change that a format fails with is told of no one",
        "publisher/encode.py",
        "            written.append(Refusal(positions=change.positions, note=note))\n",
        "            del note\n",
    ),
    # what receivers call objects
    JournalFault(
        "what a receiver calls objects is not entered",
        JOURNAL,
        "if done.associations:",
        "if False:",
    ),
    JournalFault(
        "what the log knows of a receiver's names is not read",
        TARGET,
        "known.serve(KeptAssociations(self._journal.log, self._output.name))",
        "pass",
    ),
]
