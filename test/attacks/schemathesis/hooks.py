"""What the description of the API can't say in JSON Schema, for Schemathesis."""
import json
import uuid

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(_context, value):
    """A body in lines is described as text: its lines are threads."""
    thread = {"service": "custom", "externalId": str(value), "title": "T", "quotes": []}
    return json.dumps(thread).encode()


@schemathesis.hook
def before_call(_context, case, _kwargs):
    query, headers = case.query or {}, case.headers or {}
    # A key belongs to one request.
    if "Idempotency-Key" in headers:
        headers["Idempotency-Key"] = str(uuid.uuid4())
    # Strict checks refuse what the description allows.
    if "strict" in headers.get("Prefer", ""):
        headers["Prefer"] = "wait=5"
    # A cursor belongs to the answer that it comes from.
    query.pop("after", None)
    # Only an operator names the tenant.
    if not case.path.startswith("/admin"):
        query.pop("tenant", None)
    # A name needs both parts, and `since` is of a list.
    if case.path == "/sources" and "externalId" in query:
        query.setdefault("service", "custom")
        query.pop("since", None)
    # Only failed jobs have a reason.
    if case.path == "/admin/find" and "reason" in query:
        query.pop("state", None)
