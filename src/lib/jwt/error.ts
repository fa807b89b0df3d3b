/** The error class of JSON Web Tokens. */

/**
 * `malformed`: not a token; `unsupported`: wants something we do not do; `key`: unusable key; `signature`: no key
 * verifies it; the others name the claim that is not fulfilled.
 */
export type JwtErrorCode =
  | 'malformed'
  | 'unsupported'
  | 'key'
  | 'signature'
  | 'expired'
  | 'not-yet-valid'
  | 'issuer'
  | 'audience'

export class JwtError extends Error {
  override readonly name = 'JwtError'
  readonly code: JwtErrorCode

  constructor(code: JwtErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
