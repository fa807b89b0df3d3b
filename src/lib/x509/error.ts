/** The error class of certificates and keys. */

/**
 * `malformed`: invalid encoding; `unsupported`: valid, but of an unsupported kind; `key`: unusable key; `signature`:
 * does not verify; `untrusted`: no chain to a trusted root; `expired`: outside its validity; `refused`: the issuer may
 * not do what was requested.
 */
export type X509ErrorCode = 'malformed' | 'unsupported' | 'key' | 'signature' | 'untrusted' | 'expired' | 'refused'

export class X509Error extends Error {
  override readonly name = 'X509Error'
  readonly code: X509ErrorCode

  constructor(code: X509ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Runs `read`; its errors become an `X509Error`, of `code` unless it was one already. */
export function guard<T>(code: X509ErrorCode, what: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof X509Error) throw cause
    const detail = cause instanceof Error ? cause.message : 'unknown failure'
    throw new X509Error(code, `${what}: ${detail}`, { cause })
  }
}
