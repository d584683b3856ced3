"""One request to its end: by the receiver's id of the object, found, adopted or made.

Law: an object is made once. Where nobody knows whether a request was answered, and wherever the receiver says that
the object is there, it is looked for by its unique value, never by `externalId`; and one that another object of ours
has is never taken. Where servers let two be called alike, nobody makes one while a request of the past may still reach
the receiver, and who has made a second one takes it away again. A name that another object of ours has is free as soon
as that one is told what the plan says of it, be it now. What refers to an object that the receiver does not know yet is
told as soon as it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import takewhile
from typing import Any, Final
from uuid import uuid4

import msgspec
from msgspec import Struct

from eventlog.core.associations import Awaiting
from eventlog.core.errors import SinkError
from eventlog.sinks.scim.client import ScimAnswer, ScimClient
from eventlog.sinks.scim.merge import apply_operations, apply_whole, cut_operations, list_changes, write_operations
from eventlog.sinks.scim.paths import read_path, set_value
from eventlog.sinks.scim.receiver import ScimReceiver
from eventlog.sinks.scim.references import is_past, list_unknown
from eventlog.sinks.scim.requests import PATCH_OP, ScimRequest, Unique, fill_ids, list_references
from eventlog.sinks.scim.server import NameTakenError, RefusedError, find_resources, resource_path
from eventlog.sinks.scim.settings import ResourceSettings, list_columns
from eventlog.sql.names import NAME_CHARACTERS

TRIES: Final = 4
"""How often a resource is read again, or a name asked for, that somebody else changes at the same time."""

CANNOT: Final = (HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.METHOD_NOT_ALLOWED)
"""Statuses of servers that do not do what is asked at all."""

UNREAD: Final = (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.PRECONDITION_REQUIRED)
"""Statuses of servers that somebody changes a resource at, or that want its version named: it is read first."""

BAD_PATH: Final = frozenset({"noTarget", "invalidPath", "invalidFilter"})
"""What servers say of a path that they do not follow."""


class DeferredChange(Struct, frozen=True):
    """What is still to be told of an object: an operation, and the mapping of its table."""

    mapping: str
    operation: dict[str, Any]


class ScimCarrier:
    """Carries requests over one connection."""

    def __init__(self, client: ScimClient, receiver: ScimReceiver) -> None:
        self._client = client
        self._receiver = receiver
        self._known = receiver.associations

    def carry(self, request: ScimRequest, *, is_new: bool) -> list[str]:
        """Do what a request says; return what somebody should know. RefusedError where the receiver will not.

        `is_new` says that nobody can have sent it before.
        """
        holders: list[str | None] = []
        notes: list[str] | None = None
        while notes is None:
            request, notes = self._try(request, holders, is_new=is_new)
        notes += self._write_waiting(request.object)
        for name in list_references(request.body):
            # One that was replaced meanwhile is known by now.
            if not self._receiver.is_replaced(name):
                notes += self._write_waiting(name)
        return notes

    def _try(
        self, request: ScimRequest, holders: list[str | None], *, is_new: bool
    ) -> tuple[ScimRequest, list[str] | None]:
        """Do what a request says, after objects that had its name have made room.

        None stands for notes, and the request is what is to be tried next, if an object of ours has the name.
        """
        others = {holder for holder in holders if holder is not None}
        with self._receiver.turn_of(request.object, *others), self._receiver.turn_to_name(request):
            for holder in others:
                self._make_room(request, holder)
            try:
                notes = self._carry(request, is_new=is_new)
            except NameTakenError as error:
                # More than once: other connections may change names at the same time.
                if len(holders) < TRIES and self._receiver.is_announced(error.holder):
                    holders.append(error.holder)
                    return request, None
                later = self._receiver.list_coming(request.object)[1:]
                if not any(one.ends for one in later):
                    name = _last_name(later)
                    if name is None or name in request.unique.values[:1]:
                        self._receiver.end_coming(request)
                        raise
                    # It has this name for a while only, and somebody has it already.
                    return self._as_named(request, name), None
                notes = []
            except RefusedError:
                self._receiver.end_coming(request)
                raise
            self._receiver.end_coming(request)
        return request, notes

    def _carry(self, request: ScimRequest, *, is_new: bool) -> list[str]:
        self._known.read([request.object, *list_references(request.body)])
        self._stop_waiting(request)
        if request.ends:
            return self._end(request)
        notes = self._await(request)
        if request.method == "POST":
            self._write_whole(request, is_new=is_new)
        else:
            self._write_change(request, is_new=is_new)
        return notes

    # --- names that objects of ours give to each other --------------------------------------------

    def _make_room(self, request: ScimRequest, holder: str) -> None:
        """Tell an object that has a request's name what the plan says of its own, if that is still to come."""
        coming, found = self._receiver.list_coming(holder), self._known.find(holder)
        if not coming or found is None:
            return  # it was told meanwhile
        [first, *_], end = coming, next((one for one in coming if one.ends), None)
        if end is not None:
            if end.method == "DELETE":  # of which 404 is success, when it comes
                self._delete(end, found)
            return  # one that is disabled keeps its name
        name = _last_name(coming)
        if name is None or name.casefold() in {value.casefold() for value in request.unique.values[:1]}:
            return
        try:
            self._rename(first, found, name)
        except NameTakenError as error:
            if error.holder != request.object and not self._receiver.list_coming(error.holder or ""):
                return
            # They change their names round about: one has another one until it is told.
            self._rename(first, found, f"{uuid4().hex[:12]}-{name}")

    def _as_named(self, request: ScimRequest, name: str) -> ScimRequest:
        """Make the request that gives an object another name."""
        named = {"op": "replace", "path": str(self._receiver.unique[request.mapping]), "value": name}
        body = dict(request.body or {})
        if request.method == "POST":
            body = apply_operations(body, [named])
        else:
            body["Operations"] = [named if one["path"] == named["path"] else one for one in body["Operations"]]
        unique = Unique(request.unique.path, (name, *request.unique.values[1:]))
        return msgspec.structs.replace(request, body=body, unique=unique)

    def _rename(self, request: ScimRequest, found: str, name: str) -> None:
        path = self._receiver.unique[request.mapping]
        unique = Unique(request.unique.path, (name,))
        operations = [{"op": "replace", "path": str(path), "value": name}]
        self._patch(msgspec.structs.replace(request, unique=unique), found, operations)

    def _refuse(self, request: ScimRequest, answer: ScimAnswer) -> RefusedError:
        """Make the error of a refusal, which says who has the name if that is why."""
        if answer.status != HTTPStatus.CONFLICT:
            return RefusedError(answer)
        own = self._known.find(request.object)
        found = {str(one.get("id")) for one in self._find(request, request.unique.values)} - {own}
        holders = [other for one in found if (other := self._known.find_object(one)) is not None]
        if found and not holders:
            return RefusedError(answer)
        return NameTakenError(answer, holder=next(iter(holders), None))

    # --- whole resources, changes, ends -----------------------------------------------------------

    def _write_whole(self, request: ScimRequest, *, is_new: bool) -> None:
        found = self._known.find(request.object)
        if found is not None:
            self._known.keep(request.object, found)  # it may have been over
        # Every server refuses a second user of one name, so nobody has to look for it before.
        is_safe = is_new and self._mapping(request).is_unique_for_servers
        if found is None and not is_safe:
            found = self._adopt(request)
            if found is None and not is_new:
                found = self._adopt_renamed(request)
        if found is None:
            found = self._make(request, is_new=is_new)
        if found is not None and not self._update(request, found):
            self._known.keep(request.object, None)
            found = self._adopt(request)
            if found is None:
                found = self._make(request, is_new=is_new)
            if found is not None:
                self._update(request, found)

    def _make(self, request: ScimRequest, *, is_new: bool) -> str | None:
        """Make a resource; return the id of one that is there already, and is to be told."""
        if self._mapping(request).is_unique_for_servers:
            return self._post(request)
        # What was sent before, by whomever, is done by then, or never.
        seconds = self._receiver.doubt_seconds(request.object, is_new=is_new)
        if seconds:
            self._client.wait(seconds)
            found = self._adopt(request)
            if found is not None:
                return found
        found = self._post(request)
        if found is None:
            self._leave_one(request)
        return found

    def _leave_one(self, request: ScimRequest) -> None:
        """Take away what was just made if somebody else made one meanwhile: a publisher that was frozen, or replaced."""
        made = self._known.find(request.object)
        kind, path = self._mapping(request).type, self._receiver.unique[request.mapping]
        found = {str(one.get("id")) for one in self._find(request, request.unique.values[:1])} - {made}
        # Another object of ours may be called alike.
        if made is None or all(self._known.find_object(other) for other in found):
            return
        self._delete(request, made)
        self._known.keep(request.object, None)
        # Who has the lock finds the other one, and tells it what is new.
        what = f"Somebody made a {kind} with the same {path} at {self._client.address} at the same time"
        raise SinkError(f"{what}; ours was deleted.", hint="It is tried again.")

    def _post(self, request: ScimRequest) -> str | None:
        body = fill_ids(request.body, self._find_lasting)
        # Some servers take members by PATCH alone.
        by_patch = "members" in body and self._receiver.abilities(self._client).patches
        members = body.pop("members") if by_patch else []
        try:
            answer = self._client.ask("POST", request.path, body)
        finally:
            self._receiver.doubt(request, is_open=self._client.may_be_done)
        if answer.is_taken:
            made = answer.content.get("id")
            if made is None:
                return self._adopt(request)
            self._keep(request.object, str(made))
            if members:
                self._patch(request, str(made), [{"op": "add", "path": "members", "value": members}])
            return None
        if answer.status == HTTPStatus.CONFLICT:
            found = self._adopt(request)
            if found is not None:
                # Who has sent one before has looked for it since.
                self._receiver.end_doubt_of_one(request.object)
                return found
            raise self._refuse(request, answer)
        if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            raise self._client.wrong_address(answer)
        raise RefusedError(answer)

    def _write_change(self, request: ScimRequest, *, is_new: bool) -> None:
        operations, former = self._operations(request), self._known.find(request.object)
        for known in (former, None):
            if known is None and former is not None and request.object in self._receiver.ending:
                # Its end was told before: this comes again with it, or another object needed its name.
                self._known.keep(request.object, former)
                return
            found = known or self._adopt(request)
            if found is not None and self._patch(request, found, operations):
                return
            self._known.keep(request.object, None)
        if request.is_whole:
            self._write_whole(self._as_whole(request), is_new=False)
            return
        if request.object in self._receiver.ending:
            return  # rows that wait again, of an object that was there and is over
        kind = self._mapping(request).type
        hint = "`eventlog refresh`, or `eventlog verify --repair`, tells all of it"
        raise RefusedError(None, f"the receiver has no {kind} that {request.object} is known by; {hint}")

    def _as_whole(self, request: ScimRequest) -> ScimRequest:
        """Make of a change that tells all the request that makes the resource."""
        mapping, body = self._mapping(request), apply_operations({}, (request.body or {})["Operations"])
        for path, value in request.key.items():
            set_value(body, read_path(path, "key"), value)
        if mapping.enables:
            body.setdefault("active", True)
        body["schemas"] = [mapping.core, *(key for key in body if key.lower().startswith("urn:"))]
        return msgspec.structs.replace(request, method="POST", path=self._place(request), body=body, is_whole=False)

    def _end(self, request: ScimRequest) -> list[str]:
        notes = self._end_known(request)
        unique = self._receiver.find_doubt(request.object)
        # A request that makes it may be under way still. One that is disabled keeps its name, so that is refused.
        if unique is not None and request.method == "DELETE":
            self._client.wait(self._receiver.doubt_seconds(request.object, is_new=True))
            self._end_known(msgspec.structs.replace(request, unique=unique))
        return notes

    def _end_known(self, request: ScimRequest) -> list[str]:
        """End an object's resource, if it is there."""
        try:
            found = self._known.find(request.object) or self._adopt(request)
        except NameTakenError:
            return []  # another object of ours has the name
        if found is None:
            if request.unique.values:
                return []
            kind = self._mapping(request).type
            return [f"nobody knows what the receiver calls {request.object}; if it has that {kind}, it keeps it"]
        if request.method == "PATCH":
            is_there = self._patch(request, found, self._operations(request))
            self._known.keep(request.object, found if is_there else None, over=is_there)
            return []
        self._delete(request, found)
        self._known.keep(request.object, None)
        return []

    def _delete(self, request: ScimRequest, found: str) -> None:
        path = self._path(request, found)
        answer = self._client.ask("DELETE", path)
        for _ in range(TRIES):
            if answer.status not in UNREAD:
                break
            read = self._client.ask("GET", path)
            answer = self._client.ask("DELETE", path, tag=_tag_of(read)) if read.is_taken else read
        if not answer.is_taken and answer.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            raise RefusedError(answer)

    # --- resources that are there already ---------------------------------------------------------

    def _adopt(self, request: ScimRequest) -> str | None:
        """Find the object's resource by its unique value; it is the object's from now on."""
        mapping, path = self._mapping(request), self._receiver.unique[request.mapping]
        for value in request.unique.values:
            found = [str(one.get("id")) for one in self._find(request, [value])]
            others = {
                one: other for one in found if (other := self._known.find_object(one)) not in (None, request.object)
            }
            if others and mapping.is_unique_for_servers:
                other = next(iter(others.values()))
                note = f"the receiver has a {mapping.type} with this {path} already: that of {other}"
                raise NameTakenError(None, note, holder=other)
            free = [one for one in found if one not in others]
            # Answers of several of ours that are called alike may be lost: then each takes one.
            if len(free) > max(1, self._receiver.count_called(request.mapping, value)):
                several = f"{len(free)} {mapping.type}s"
                raise RefusedError(None, f"the receiver has {several} with this {path}; leave one there")
            if free:
                self._keep(request.object, free[0])
                return free[0]
        return None

    def _adopt_renamed(self, request: ScimRequest) -> str | None:
        """Find it by a name that it gets later in this plan: who died may have told it so."""
        later = takewhile(lambda one: not one.ends, self._receiver.list_coming(request.object)[1:])
        names = dict.fromkeys(value for one in later for value in one.unique.values)
        for value in names.keys() - {*request.unique.values}:
            found = [str(one.get("id")) for one in self._find(request, [value])]
            if len(found) == 1 and self._known.find_object(found[0]) is None:
                self._keep(request.object, found[0])
                return found[0]
        return None

    def _find(self, request: ScimRequest, values: Sequence[str]) -> list[dict[str, Any]]:
        """Find the resources that have one of these unique values."""
        place, path = self._place(request), self._receiver.unique[request.mapping]
        filters = self._receiver.abilities(self._client).filters
        return [
            found for value in values for found in find_resources(self._client, place, path, value, filters=filters)
        ]

    def _keep(self, name: str, known: str) -> None:
        if len(known) > NAME_CHARACTERS:
            raise RefusedError(None, f"the receiver calls it by an id of more than {NAME_CHARACTERS} characters")
        self._known.keep(name, known)
        self._receiver.end_doubt(name)

    def _update(self, request: ScimRequest, found: str) -> bool:
        """Update a resource to the whole object; return True if it exists."""
        body, paths = fill_ids(request.body, self._find_lasting), self._receiver.paths[request.mapping]
        return self._change(request, found, lambda resource: apply_whole(resource, body, paths))

    def _patch(self, request: ScimRequest, found: str, operations: Sequence[Mapping[str, Any]]) -> bool:
        """Change a resource; whether it is there."""
        if not operations:
            return True
        # Not every server lets members go by it; who they are is read, and told one by one.
        is_all = any(operation["op"] == "replace" and operation["path"] == "members" for operation in operations)
        if self._receiver.abilities(self._client).patches and not is_all:
            answer = self._send_patch(self._path(request, found), operations)
            if answer.is_taken:
                return True
            if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
                return False
            if answer.status in CANNOT:
                self._receiver.cannot_patch()
            elif answer.type not in BAD_PATH and answer.status not in UNREAD:
                raise self._refuse(request, answer)
        return self._change(request, found, lambda resource: apply_operations(resource, operations))

    def _send_patch(self, path: str, operations: Sequence[Mapping[str, Any]], tag: str = "") -> ScimAnswer:
        """Send operations, in pieces where they have many values; return the first refusal, else the last answer."""
        for piece in cut_operations(write_operations(operations)):
            answer = self._client.ask("PATCH", path, {"schemas": [PATCH_OP], "Operations": piece}, tag=tag)
            if not answer.is_taken:
                break
            tag = ""  # who had it has changed it
        return answer

    def _change(self, request: ScimRequest, found: str, change: Any) -> bool:
        """Read a resource, change it, and give it back; whether it is there."""
        path, query = self._path(request, found), {}
        if self._mapping(request).type == "Group" and self._receiver.abilities(self._client).patches:
            # Some servers show members only to who asks for them.
            tops = dict.fromkeys(path.top for path in self._receiver.paths[request.mapping])
            query["attributes"] = ",".join(tops)
        for _ in range(TRIES):
            read = self._client.ask("GET", path, query=query)
            if read.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
                return False
            if not read.is_taken:
                raise RefusedError(read)
            after = change(read.content)
            operations = list_changes(read.content, after)
            if not operations:
                return True
            answer = self._give_back(path, read, after, operations)
            if answer.is_taken:
                return True
            if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
                return False
            if answer.status not in UNREAD:
                raise self._refuse(request, answer)
        raise RefusedError(answer)

    def _give_back(
        self, path: str, read: ScimAnswer, after: dict[str, Any], operations: list[dict[str, Any]]
    ) -> ScimAnswer:
        abilities = self._receiver.abilities(self._client)
        tag = _tag_of(read) if abilities.tags else ""
        if abilities.patches:
            answer = self._send_patch(path, operations, tag)
            if answer.status not in CANNOT:
                return answer
            self._receiver.cannot_patch()
        after = {key: value for key, value in after.items() if key != "meta"}
        urns = [key for key in after if key.lower().startswith("urn:")]
        after["schemas"] = list(dict.fromkeys([*after.get("schemas", ()), *urns]))
        return self._client.ask("PUT", path, after, tag=tag)

    # --- what refers to objects that the receiver does not know yet -------------------------------

    def _await(self, request: ScimRequest) -> list[str]:
        """Keep references to unknown objects until these appear; return their names."""
        names: list[str] = []
        columns = list_columns(self._mapping(request), request.mapping)
        for name, place, operation in list_unknown(request, columns, self._is_unknown):
            deferred = msgspec.json.encode(DeferredChange(request.mapping, operation)).decode()
            awaiting, is_old = Awaiting(request.object, place, deferred), self._receiver.is_replaced(name)
            found = self._known.find_or_await(name, awaiting, is_old=is_old)
            if found is None and name not in self._receiver.expected:
                names.append(name)
        if not names:
            return []
        return [
            f"{', '.join(dict.fromkeys(names))}: the receiver does not have it yet; the reference is sent as soon as it has"
        ]

    def _is_unknown(self, name: str) -> bool:
        """Tell whether the receiver does not know an object yet; one that leaves with this plan is not waited for."""
        return not self._receiver.is_leaving(name) and self._find_lasting(name) is None

    def _find_lasting(self, name: str) -> str | None:
        """Find an object's id; None where it is soon another one, or none."""
        is_passing = self._receiver.is_leaving(name) or self._receiver.is_replaced(name)
        return None if is_passing else self._known.find(name)

    def _stop_waiting(self, request: ScimRequest) -> None:
        """Drop waiting references this request makes out of date."""
        is_all = request.ends or request.method == "POST"
        operations = () if is_all else (request.body or {})["Operations"]
        for name, awaiting in self._known.waiting_of(request.object):
            if is_all or is_past(awaiting, name, operations):
                self._known.end_waiting(name, awaiting)

    def _write_waiting(self, name: str) -> Iterator[str]:
        """Tell what has waited for an object."""
        for awaiting in self._known.awaiting(name):
            if self._find_lasting(name) is None:
                return
            with self._receiver.turn_of(awaiting.object):
                if awaiting not in self._known.awaiting(name):
                    continue
                deferred = msgspec.json.decode(awaiting.request, type=DeferredChange)
                note = self._write_one(awaiting.object, deferred)
                self._known.end_waiting(name, awaiting)
            if note:
                yield f"{awaiting.object} refers to it: {note}"

    def _write_one(self, name: str, deferred: DeferredChange) -> str:
        found = self._known.find(name)
        if found is None or deferred.mapping not in self._receiver.mappings:
            return ""
        place = self._receiver.mappings[deferred.mapping].place
        body = {"schemas": [PATCH_OP], "Operations": [deferred.operation]}
        path = f"{place}/{{id}}"
        request = ScimRequest(
            method="PATCH", path=path, object=name, unique=Unique(""), mapping=deferred.mapping, body=body
        )
        try:
            self._patch(request, found, self._operations(request))
        except RefusedError as error:
            return error.note
        return ""

    # --- parts of a request -----------------------------------------------------------------------

    def _operations(self, request: ScimRequest) -> list[dict[str, Any]]:
        """Fill a PATCH's operations with ids; leave out those with nothing left."""
        operations: list[dict[str, Any]] = []
        for operation in (request.body or {}).get("Operations", ()):
            find = self._known.find if operation["op"] == "remove" else self._find_lasting
            value = fill_ids(operation.get("value"), find)
            if value is None and operation["op"] == "replace" and isinstance(operation.get("value"), list):
                value = []  # whom the receiver does not know yet comes later, and those before go now
            if operation["op"] == "remove":
                if "value" not in operation or value:
                    operations.append(operation | ({"value": value} if value else {}))
            elif value is not None:
                operations.append({**operation, "value": value})
        return operations

    def _mapping(self, request: ScimRequest) -> ResourceSettings:
        return self._receiver.mappings[request.mapping]

    def _place(self, request: ScimRequest) -> str:
        return request.path.removesuffix("/{id}")

    def _path(self, request: ScimRequest, found: str) -> str:
        return resource_path(self._place(request), found)


def _tag_of(read: ScimAnswer) -> str:
    """Return the version of a resource that was read."""
    return read.tag or str((read.content.get("meta") or {}).get("version") or "")


def _last_name(requests: Sequence[ScimRequest]) -> str | None:
    """Return the unique value that an object has after these requests; None where they do not say."""
    return next((one.unique.values[0] for one in reversed(requests) if one.unique.values and not one.ends), None)
