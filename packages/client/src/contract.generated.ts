// The types of requests and answers. Generated from the schemas of the contract by `pnpm run docs`: change them there.

/** What kind of thing a source is. */
export type Service =
  | 'x'
  | 'zendesk'
  | 'linear'
  | 'googledoc'
  | 'youtube'
  | 'slack'
  | 'email'
  | 'twitter'
  | 'facebook'
  | 'reddit'
  | 'file'
  | 'play_store'
  | 'app_store'
  | 'spreadsheet'
  | 'telegram'
  | 'discord'
  | 'imessage'
  | 'custom'

/** The effect of this request on the document. `deleted`: none, because a deletion that was accepted later was stored before. */
export type Outcome = 'created' | 'updated' | 'unchanged' | 'deleted'

/** waiting includes a job between two attempts. */
export type JobState = 'waiting' | 'active' | 'completed' | 'failed'

/** The kind of problem, for programs. */
export type ProblemCode =
  | 'api_key_invalid'
  | 'importer_only'
  | 'operator_only'
  | 'deletes_forbidden'
  | 'route_unknown'
  | 'import_unknown'
  | 'source_unknown'
  | 'job_unknown'
  | 'operation_unknown'
  | 'method_not_allowed'
  | 'request_timeout'
  | 'body_too_large'
  | 'media_type_unsupported'
  | 'charset_unsupported'
  | 'encoding_unsupported'
  | 'transfer_coding_unsupported'
  | 'expectation_unknown'
  | 'headers_too_large'
  | 'body_unreadable'
  | 'json_invalid'
  | 'request_invalid'
  | 'idempotency_key_invalid'
  | 'idempotency_key_reused'
  | 'rate_limited'
  | 'internal'
  | 'job_failed'
  | 'operations_full'
  | 'queue_unavailable'
  | 'queue_full'
  | 'tenant_share'
  | 'keys_unavailable'
  | 'store_unavailable'
  | 'overloaded'
  | 'stopping'
  | 'acceptance_unknown'
  | 'job_pending'

/** The limits of one request. */
export type LimitName =
  | 'bodyBytes'
  | 'nesting'
  | 'jsonValues'
  | 'quotes'
  | 'externalId'
  | 'title'
  | 'text'
  | 'url'
  | 'description'
  | 'string'
  | 'importBytes'

/** What is wrong, for programs. */
export type ValidationErrorCode =
  | 'required'
  | 'type'
  | 'too_long'
  | 'too_many'
  | 'enum'
  | 'date'
  | 'not_well_formed'
  | 'not_finite'
  | 'unknown_field'
  | 'duplicate'
  | 'unmatched_reply'
  | 'nesting_too_deep'
  | 'header_invalid'
  | 'not_http'
  | 'not_decodable'
  | 'not_json'

/** What is wrong with a value of a request. */
export interface ValidationError {
  /** JSON Pointer (RFC 6901) into the request body; "" is all of it. For a query: / and the parameter. */
  pointer: string
  /** What is wrong, for programs. */
  code: ValidationErrorCode
  /** What is wrong, for people. */
  message: string
}

/** A problem (RFC 9457). */
export interface Problem {
  /** The page that says what the problem means and what to do. `code` names the kind of problem too. */
  type: string
  /** The kind of problem. The same for every problem of one code. */
  title: string
  /** The HTTP status. */
  status: number
  /** What happened, and what to do about it. */
  detail: string
  /** The path of the request. */
  instance?: string
  /** The kind of problem, for programs. */
  code: ProblemCode
  /** The X-Request-Id of the answer. */
  requestId: string
  /** At most 50 of the validation errors. Every 400 has them. */
  errors?: ValidationError[]
  /** How many validation errors the request has. */
  total?: number
  /** Unknown fields that look like known ones, each name once, at most 20. They were ignored. */
  warnings?: Warning[]
  /** Exceeded quotas, as in RateLimit-Policy. */
  'violated-policies'?: string[]
  /** The job of the request. See GET /jobs/{id}. */
  jobId?: string
}

/** A comment or message of a source. */
export interface QuoteRequest {
  /** Text of the quote. */
  text: string
  /** Your own id. It names the quote within its source: posting it again updates the quote. */
  externalId?: string | null
  /** Author of the quote. */
  speaker?: string | null
  /** Another name of `speaker`. If both are sent, `speaker` wins. */
  username?: string | null
  /** When the quote was created. ISO 8601, in UTC without an offset. */
  createdAt?: string | null
  /** The `externalId` of the quote that this one answers. That quote may arrive later. */
  replyingTo?: string | null
  /** Upvotes or likes of the quote. */
  upVotes?: number | null
  /** Downvotes or dislikes of the quote. */
  downVotes?: number | null
  /** Score of the quote. Without one, `upVotes` minus `downVotes`. */
  score?: number | null
  /** Names a quote without an `externalId`, as an export writes it. */
  exportedId?: string | null
}

/** A source together with its quotes. */
export interface ThreadRequest {
  /** What kind of thing the source is: one of the list. */
  service: Service
  /** Your own id. With `service`, it names the source: posting it again updates the source. */
  externalId: string
  /** Title of the source. */
  title: string
  /** Name of the channel or subreddit. */
  channelName?: string | null
  /** Identifier of the channel or subreddit. */
  channelId?: string | null
  /** Brief description of the source. */
  description?: string | null
  /** When the source was created. ISO 8601, in UTC without an offset. */
  createdAt?: string | null
  /** URL of the source. */
  url?: string | null
  /** Upvotes or likes of the source. */
  upVotes?: number | null
  /** Downvotes or dislikes of the source. */
  downVotes?: number | null
  /** Score of the source. Without one, `upVotes` minus `downVotes`. */
  score?: number | null
  /** The messages or comments, in order. May be empty. */
  quotes: QuoteRequest[]
}

/** An unknown field that looks like a known one. */
export interface Warning {
  /** JSON Pointer (RFC 6901) to the first such field in the request body. */
  pointer: string
  /** What is odd, for programs. */
  code: 'unknown_field'
  /** What is odd, for people. */
  message: string
}

/** A source, as stored. */
export interface SourceAnswer extends StoredSource {
  /** The effect of this request on the document. `deleted`: none, because a deletion that was accepted later was stored before. */
  outcome: Outcome
}

/** A quote, as stored. */
export interface QuoteAnswer {
  /** Identifier of the stored quote. It never changes. */
  id: string
  text: string
  externalId?: string
  /** Sent as speaker or as username. */
  speaker?: string
  /** The externalId of the quote that this one replies to. */
  replyingTo?: string
  upVotes?: number
  downVotes?: number
  /** The one that was sent, else upVotes minus downVotes. */
  score?: number
  /** The date that was sent. */
  createdAt?: string
  /** The effect of this request on the document. `deleted`: none, because a deletion that was accepted later was stored before. `suppressed`: it is stored as `[erased]`, because its speaker is suppressed. */
  outcome: 'created' | 'updated' | 'unchanged' | 'deleted' | 'suppressed'
}

/** The source and the quotes of a request, as stored. */
export interface ThreadAnswer {
  message: 'New source received successfully.'
  source: SourceAnswer
  quotes: QuoteAnswer[]
  /** Unknown fields that look like known ones, each name once, at most 20. They were ignored. */
  warnings?: Warning[]
}

/** What was sent, normalised. */
export interface AcceptedAnswer {
  message: 'New source received successfully.'
  source: {
    title: string
    /** Null if it is absent. */
    description: string | null
    externalId: string
    service: Service
    channelName?: string
    channelId?: string
    url?: string
    upVotes?: number
    downVotes?: number
    /** The one that was sent, else upVotes minus downVotes. */
    score?: number
  }
  quotes: {
    text: string
    externalId?: string
    /** Sent as speaker or as username. */
    speaker?: string
    /** The externalId of the quote that this one replies to. */
    replyingTo?: string
    upVotes?: number
    downVotes?: number
    /** The one that was sent, else upVotes minus downVotes. */
    score?: number
  }[]
  /** Unknown fields that look like known ones, each name once, at most 20. They were ignored. */
  warnings?: Warning[]
}

/** A stored source, as it is read. */
export interface StoredSource {
  /** Identifier of the stored source. It never changes. */
  id: string
  title: string
  /** Null if it is absent. */
  description: string | null
  externalId: string
  service: Service
  channelName?: string
  channelId?: string
  url?: string
  upVotes?: number
  downVotes?: number
  /** The one that was sent, else upVotes minus downVotes. */
  score?: number
  /** Words in all stored quotes of the source. */
  wordCount: number
  status: 'TRANSCRIBED'
  /** The date that was sent, else when the source was first accepted. */
  createdAt: string
}

/** A stored quote, as it is read. */
export interface StoredQuote {
  /** Identifier of the stored quote. It never changes. */
  id: string
  text: string
  externalId?: string
  /** Sent as speaker or as username. */
  speaker?: string
  /** The externalId of the quote that this one replies to. */
  replyingTo?: string
  upVotes?: number
  downVotes?: number
  /** The one that was sent, else upVotes minus downVotes. */
  score?: number
  /** The date that was sent. */
  createdAt?: string
  /** Sorts the quotes of a source in the order in which they were first given. */
  position: string
}

/** A stored source, and a page of its quotes in their order. */
export interface SourcePage {
  source: StoredSource
  quotes: StoredQuote[]
  /** Give it as `after` for the next page. Absent on the last one. */
  next?: string
}

/** A stored source in a list. */
export interface ListedSource extends StoredSource {
  /** Stored quotes of the source. */
  quoteCount: number
  /** When the first request for the source was accepted. */
  acceptedAt: string
}

/** A page of a tenant's sources. */
export interface SourceList {
  sources: ListedSource[]
  /** Give it as `after` for the next page. Absent on the last one. */
  next?: string
}

/** The result of an item that is stored. */
export interface StoredItem {
  /** The place of the item in the import, from 0. */
  index: number
  /** The externalId of the item. */
  externalId: string
  status: 200
  /** The effect of this request on the document. `deleted`: none, because a deletion that was accepted later was stored before. */
  outcome: Outcome
  /** Identifier of the stored source. It never changes. */
  id: string
  /** Words in all stored quotes of the source. */
  wordCount: number
  /** The outcomes of the item's quotes. */
  quotes: {
    /** How many are new. */
    created: number
    /** How many were stored before and have changed. */
    updated: number
    /** How many were stored before and are the same. */
    unchanged: number
    /** How many are stored as `[erased]`. */
    suppressed?: number
  }
  /** Unknown fields that look like known ones, each name once, at most 20. They were ignored. */
  warnings?: Warning[]
}

/** The result of an item that is done. */
export interface DeletedItem extends DeletionAnswer {
  /** The place of the item in the import, from 0. */
  index: number
  status: 200
}

/** The result of an item that is not stored, with the problem that POST /sources would have answered. */
export interface RefusedItem {
  /** The place of the item in the import, from 0. */
  index: number
  /** The line of the item, blank lines included. */
  line?: number
  /** The externalId of the item, if it could be read. */
  externalId?: string
  /** The status of the problem. */
  status: number
  /** A problem (RFC 9457). */
  problem: Problem
}

/** What became of an import so far. */
export interface ImportProgress {
  id: string
  /** `stopped`: no request of it is under way, and its last one broke off. */
  state: 'active' | 'completed' | 'stopped'
  summary: {
    /** Items so far. */
    received: number
    /** How many are new. */
    created: number
    /** How many were stored before and have changed. */
    updated: number
    /** How many were stored before and are the same. */
    unchanged: number
    /** Items that are not stored. */
    failed: number
  }
  /** The title of the problem for which no more of it is taken in at the moment. */
  waitsFor?: string
  /** The first problems, up to one MiB, each with at most five of its errors. */
  problems: {
    /** The place of the item in the import, from 0. */
    index: number
    /** The line of the item, blank lines included. */
    line?: number
    /** The externalId of the item, if it could be read. */
    externalId?: string
    /** A problem (RFC 9457). */
    problem: Problem
  }[]
}

export interface DeletionAnswer {
  /** Identifier of the source. */
  id: string
  /** `absent`: your tenant has nothing that it names. */
  outcome: 'deleted' | 'absent'
  /** The quotes that were removed. */
  quotes: number
}

/** The state of a job. */
export interface JobAnswer {
  id: string
  /** waiting includes a job between two attempts. */
  state: JobState
  /** When the job entered this state. */
  changedAt: string
  /** Attempts made so far. */
  attempts: number
  result?: ThreadAnswer
  deletion?: DeletionAnswer
  /** A problem (RFC 9457). */
  problem?: Problem
}
