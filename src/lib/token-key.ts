/** Hashes bearer tokens to cache keys, so that no cache contains a token. */
import { hash } from 'node:crypto'

/** The last token: several authenticators want the key of the same one, one after the other. */
let last = { token: '', key: hash('sha256', '', 'base64') }

export function tokenKey(token: string): string {
  if (token !== last.token) last = { token, key: hash('sha256', token, 'base64') }
  return last.key
}
