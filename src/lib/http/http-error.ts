/** The error class of HTTP requests. It is in a separate file, because the client takes long to load. */

/** `connect`: no connection; `timeout`; `aborted`: by the caller; `broken`: lost on the way; `too-large`: body above the limit. */
export type HttpErrorCode = 'connect' | 'timeout' | 'aborted' | 'broken' | 'too-large'

/** The error of a failed request. A 4xx or 5xx response is not a failure. */
export class HttpError extends Error {
  override readonly name = 'HttpError'
  readonly code: HttpErrorCode

  constructor(code: HttpErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
