// The front door `@sluice/store/keys`: what apps use of keys.
export {
  isWellFormedKey,
  type KeyAccess,
  type KeyLimits,
  type KeyRecord,
  type KeyRole,
  keyAccess,
  keyState,
  shortKeyId,
} from './key.ts'
export { createKeyring, type Keyring, type KeyVerdict, type KnownKey } from './keyring.ts'
export {
  AmbiguousKeyError,
  createKey,
  DuplicateKeyNameError,
  InvalidKeyDetailError,
  limitKey,
  listKeys,
  type NewKey,
  revokeKey,
  rotateKey,
  UnknownKeyError,
} from './manage-keys.ts'
