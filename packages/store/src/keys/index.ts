// The front door `@sluice/store/keys`: what apps use of keys.
export { isLive, isWellFormedKey, type KeyAccess, type KeyRecord, keyAccess } from './key.ts'
export { createKeyring, type Keyring, type KeyVerdict } from './keyring.ts'
export {
  AmbiguousKeyError,
  createKey,
  InvalidKeyDetailError,
  listKeys,
  type NewKey,
  revokeKey,
  rotateKey,
  UnknownKeyError,
} from './manage-keys.ts'
