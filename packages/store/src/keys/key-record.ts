/** What is known of a key; the key itself is kept nowhere. */
export interface KeyRecord {
  /** The key's SHA-256 in hexadecimal. */
  readonly id: string
  readonly tenant: string
  readonly name: string
  readonly createdAt: Date
  readonly expiresAt?: Date
  /** Known to the minute. */
  readonly lastUsedAt?: Date
  readonly revokedAt?: Date
  /** The id of the key that a rotation put in this one's place. */
  readonly replacedBy?: string
}

/** A key at the only moment at which its text is known. */
export interface NewKey {
  readonly key: string
  readonly record: KeyRecord
}

/** Whether a key opens anything at `now`, in milliseconds since the epoch. */
export function isLive({ expiresAt, revokedAt }: Pick<KeyRecord, 'expiresAt' | 'revokedAt'>, now: number): boolean {
  return revokedAt === undefined && (expiresAt === undefined || expiresAt.getTime() > now)
}
