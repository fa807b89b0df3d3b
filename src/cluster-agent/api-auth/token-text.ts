/** The text form of API tokens, `hk_<name>_<secret>`, and the hash that is stored instead of the secret. */
import { hash, timingSafeEqual } from 'node:crypto'

export interface TokenParts {
  /** The name of the Token object. */
  readonly name: string
  readonly secret: string
}

/** The name is that of an object; 43 characters of base64url have 256 bits. */
const TEXT = /^hk_([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)_([A-Za-z0-9_-]{43})$/

/** Undefined: the text is no token of the management server. */
export function splitToken(text: string): TokenParts | undefined {
  const [, name, secret] = TEXT.exec(text) ?? []
  return name === undefined || secret === undefined ? undefined : { name, secret }
}

/** SHA-256 in lower-case hex. The secret is random, so that a slow hash would add nothing. */
export function hashOfSecret(secret: string): string {
  return hash('sha256', secret)
}

/** For tokens that do not exist: comparing with it takes as long as with another. */
export const NO_HASH: string = '0'.repeat(64)

/** Takes the same time for all hashes of one length. */
export function isSameHash(computed: string, stored: string): boolean {
  return stored.length === computed.length && timingSafeEqual(Buffer.from(computed), Buffer.from(stored))
}
