/** The one error of this folder, whatever went wrong underneath. */

/**
 * `malformed`: not what it should be; `unsupported`: well formed, but of a kind we do not take; `key`: unusable key;
 * `signature`: does not verify; `untrusted`: no way to a trusted root; `expired`: outside its time; `refused`: asked for
 * something the issuer may not do.
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

/** Runs `read`; whatever it throws comes out as an `X509Error`, of `code` unless it was one already. */
export function guard<T>(code: X509ErrorCode, what: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof X509Error) throw cause
    const detail = cause instanceof Error ? cause.message : 'unknown failure'
    throw new X509Error(code, `${what}: ${detail}`, { cause })
  }
}
