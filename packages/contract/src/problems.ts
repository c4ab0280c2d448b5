// The closed list of problems: the status and the title of each, what it means, and what its caller
// should do.

/**
 * A kind of problem. `meaning` and `remedy` are shown on `/docs/problems`, in Markdown without
 * links.
 */
export interface ProblemKind {
  status: number
  title: string
  /**
   * The URI of a registered type. Without it, the type is the kind's section of `/docs/problems`.
   */
  type?: string
  meaning: string
  remedy: string
}

/** All problems that a request can meet, by code. */
export const PROBLEMS = {
  api_key_invalid: {
    status: 403,
    title: 'API key missing or invalid',
    meaning:
      '`x-api-key` is missing, or its key is unknown, revoked or expired. It is checked before the path.',
    remedy:
      'Send a valid key as `x-api-key: slc_…`. An operator creates keys with `sluice keys create`.',
  },
  importer_only: {
    status: 403,
    title: 'For keys of importers only',
    meaning:
      'This is the key of an operator or a viewer. It has no tenant, so it can neither post nor read threads, except that an operator exports the threads of a `tenant`.',
    remedy: 'Use the key of an importer.',
  },
  operator_only: {
    status: 403,
    title: 'For keys of operators only',
    meaning:
      'The key is valid, but it is not an operator’s. The paths under `/admin` handle the failed jobs of all tenants. A viewer’s key can only read there, and can’t filter by `reason`.',
    remedy: 'Use a key that was created with `sluice keys create --role operator`.',
  },
  deletes_forbidden: {
    status: 403,
    title: 'Key may not delete',
    meaning:
      "This is a viewer's key, or an importer's that was created without the right to delete or that names another tenant. Nothing was deleted.",
    remedy:
      'Use a key that was created with `sluice keys create --deletes`, or an operator’s key with the parameter `tenant`.',
  },
  route_unknown: {
    status: 404,
    title: 'Nothing at this path',
    meaning: 'The API has no such path. Paths are case-sensitive and do not end with a slash.',
    remedy: 'Compare the path with those in `/openapi.json`.',
  },
  import_unknown: {
    status: 404,
    title: 'No such import',
    meaning:
      'Your tenant has no import with this id, or its last item was completed more than a day ago.',
    remedy: 'Check the id. Posting the import again is safe unless something newer was posted.',
  },
  source_unknown: {
    status: 404,
    title: 'No such source',
    meaning:
      'Your tenant has no stored source with this id or name. A source that is accepted but not stored yet is unknown too.',
    remedy:
      'Check `service` and `externalId`, or the id. A job that is not done yet is at `GET /jobs/{id}`.',
  },
  job_unknown: {
    status: 404,
    title: 'No such job',
    meaning:
      'Your tenant has no job with this id, or the job ended too long ago. After `acceptance_unknown`, this does not mean that the request was refused.',
    remedy: 'Check the id. Posting the thread again is safe unless something newer was posted.',
  },
  operation_unknown: {
    status: 404,
    title: 'No such operation',
    meaning: 'No operation has this id, or it was completed more than a week ago.',
    remedy: 'Check the id. `GET /admin/jobs` lists the jobs that are still failed.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    meaning: 'The path exists, but not with this method.',
    remedy: 'Use one of the methods in the header `Allow`.',
  },
  request_timeout: {
    status: 408,
    title: 'Request took too long',
    meaning:
      'The head did not arrive within 20 seconds, or the body arrived too slowly. Nothing was accepted.',
    remedy: 'Send the request again, without pauses.',
  },
  body_too_large: {
    status: 413,
    title: 'Body too large',
    meaning:
      'The body, or a line of an import, exceeds a limit before or after it is inflated, or needs too much memory to parse. Nothing was accepted, except the lines of an import that have results.',
    remedy:
      'Send less at once: `GET /limits` lists the limits. Send a long thread in parts with the same `externalId`, and a large array as `application/x-ndjson`.',
  },
  media_type_unsupported: {
    status: 415,
    title: 'Media type not supported',
    meaning: 'The header `Content-Type` is missing, or names a type that this path does not read.',
    remedy:
      'Send `Content-Type: application/json`, or `application/x-ndjson` for the lines of an import.',
  },
  charset_unsupported: {
    status: 415,
    title: 'Charset not supported',
    meaning: 'The header `Content-Type` names a charset other than UTF-8.',
    remedy: 'Encode the body in UTF-8, and send `charset=utf-8` or no charset.',
  },
  encoding_unsupported: {
    status: 415,
    title: 'Content encoding not supported',
    meaning: 'The header `Content-Encoding` names a coding that the service does not read.',
    remedy: 'Use one of the codings in the header `Accept-Encoding` of the answer, or none.',
  },
  transfer_coding_unsupported: {
    status: 501,
    title: 'Transfer coding not supported',
    meaning: 'The header `Transfer-Encoding` names a coding other than `chunked`.',
    remedy:
      'Send `Transfer-Encoding: chunked`, and name a compression of the body in `Content-Encoding`.',
  },
  expectation_unknown: {
    status: 417,
    title: 'Expectation not known',
    meaning: 'The header `Expect` has a value other than `100-continue`.',
    remedy: 'Leave the header out.',
  },
  headers_too_large: {
    status: 431,
    title: 'Headers too large',
    meaning:
      'The request line and the headers are larger than 16 KiB, or there are more than 100 headers.',
    remedy: 'Send fewer or shorter headers.',
  },
  body_unreadable: {
    status: 400,
    title: 'Body not readable',
    meaning:
      'The request breaks a rule of HTTP, or its body ends too early, does not inflate, or is not UTF-8.',
    remedy: 'Correct the request as `errors` says.',
  },
  json_invalid: {
    status: 400,
    title: 'Body is not JSON',
    meaning: 'The body, or a line of an import, is not JSON. `errors` names the place.',
    remedy:
      'Correct the text. An import needs each thread on one line: with `curl`, send `--data-binary`.',
  },
  request_invalid: {
    status: 400,
    title: 'Request invalid',
    meaning:
      'The body or the query is not valid. `errors` lists the first 50 validation errors, and `total` counts all of them.',
    remedy: 'Correct each error, and send the request again.',
  },
  idempotency_key_invalid: {
    status: 400,
    title: 'Idempotency-Key invalid',
    meaning:
      'The header `Idempotency-Key` is malformed or too long, or was sent to a path that does not take it.',
    remedy:
      'Send it on `POST /sources` or a `DELETE` only, as `errors` says. Posting the same thread again is safe without it.',
  },
  idempotency_key_reused: {
    status: 422,
    title: 'Idempotency-Key used for another request',
    meaning:
      'Your tenant sent another request with this key within the last 24 hours: its body was different, or only one of the two waits for its answer. Nothing was accepted.',
    remedy:
      'Use a new key for each new request, and the same key only to send the same request again.',
  },
  rate_limited: {
    status: 429,
    title: 'Quota exceeded',
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    meaning:
      'The key has used up its quota of quotes. Nothing was accepted, and this request costs nothing.',
    remedy: 'Wait as many seconds as `Retry-After` says, and send the request again.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    meaning:
      'Something went wrong inside the service. Its log has the error under the `requestId`.',
    remedy: 'Report the `requestId` to the operators. Posting again is safe.',
  },
  job_failed: {
    status: 500,
    title: 'Job failed',
    meaning:
      'The request was accepted, but every attempt to store it failed. The job is kept with the reason for thirty days.',
    remedy:
      'Report the `jobId` to the operators, who can fix the cause and run the job again. You need not post it again.',
  },
  operations_full: {
    status: 503,
    title: 'Too many operations',
    meaning: 'A hundred operations on failed jobs are waiting. This one was not started.',
    remedy: 'Wait as many seconds as `Retry-After` says, and send it again.',
  },
  queue_unavailable: {
    status: 503,
    title: 'Queue not available',
    meaning:
      "Redis is unavailable, or did not answer in time. A post was not accepted, and never will be. An operator's retry, discard, pause or resumption may still be carried out.",
    remedy:
      'Send it again after `Retry-After` seconds. The service recovers by itself when Redis is back.',
  },
  queue_full: {
    status: 503,
    title: 'Queue is full',
    meaning:
      'The service has accepted as much as it can store for now. The request was not accepted, and never will be.',
    remedy: 'Send it again after `Retry-After` seconds.',
  },
  tenant_share: {
    status: 503,
    title: "Tenant's share of the queue is used up",
    meaning:
      "Too many of your tenant's threads are waiting to be stored. The request was not accepted, and never will be.",
    remedy: 'Send it again after `Retry-After` seconds, and post less at once.',
  },
  keys_unavailable: {
    status: 503,
    title: 'Keys not available',
    meaning:
      "The key can't be checked while MongoDB is unavailable, because this replica has not seen it lately.",
    remedy: 'Send the request again after `Retry-After` seconds.',
  },
  store_unavailable: {
    status: 503,
    title: 'Store not available',
    meaning: "MongoDB can't be reached, or takes too long for a read. Posts are still accepted.",
    remedy: 'Send the request again after `Retry-After` seconds.',
  },
  overloaded: {
    status: 503,
    title: 'Service is overloaded',
    meaning:
      'The process is out of memory, connections or time. A post was not accepted, and never will be.',
    remedy: 'Send it again after `Retry-After` seconds.',
  },
  stopping: {
    status: 503,
    title: 'Service is stopping',
    meaning:
      'This process is stopping, and had not read the whole body. The request was not accepted, and never will be.',
    remedy: 'Send it again after `Retry-After` seconds: another replica accepts it.',
  },
  acceptance_unknown: {
    status: 504,
    title: 'Acceptance not confirmed',
    meaning:
      'Redis did not confirm the request in time, or failed over to a server that does not know it. Either the request was accepted before this answer and precedes everything posted after it, or it never will be.',
    remedy:
      'Post it again: that is safe unless something newer was posted for this source. `GET /jobs/{id}` finds the job if the request was accepted.',
  },
  job_pending: {
    status: 504,
    title: 'Job not done yet',
    meaning:
      'The request was accepted, but was not stored within the time that a caller may wait. The job goes on.',
    remedy:
      'Look it up at `Location`. Posting the same again is safe unless something newer was posted.',
  },
} as const satisfies Record<string, ProblemKind>

export type ProblemCode = keyof typeof PROBLEMS

/**
 * Returns the `type` of a problem (RFC 9457, section 3.1.1): a URI that leads to the problem's
 * meaning and remedy.
 */
export function problemType(code: ProblemCode): string {
  const { type }: ProblemKind = PROBLEMS[code]
  return type ?? `/docs/problems#${code}`
}
