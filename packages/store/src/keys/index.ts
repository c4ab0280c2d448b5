// The front door `@sluice/store/keys`: what apps use of keys.
export {
  isLive,
  isWellFormedKey,
  type KeyAccess,
  type KeyLimits,
  type KeyRecord,
  type KeyRole,
  keyAccess,
  shortKeyId,
} from './key.ts'
export { createKeyring, type Keyring, type KeyVerdict, type KnownKey } from './keyring.ts'
export {
  AmbiguousKeyError,
  createKey,
  InvalidKeyDetailError,
  limitKey,
  listKeys,
  type NewKey,
  revokeKey,
  rotateKey,
  UnknownKeyError,
} from './manage-keys.ts'
