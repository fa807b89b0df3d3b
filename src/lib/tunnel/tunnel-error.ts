/** The error class of tunnels and their streams. */

/**
 * `refused`: the other side does not serve the address; `reset`: the other side ended the stream with an error; `ended`:
 * the tunnel has ended; `overflow`: too much waits to be read; `window`: the peer sent more than permitted.
 */
export type TunnelErrorCode = 'refused' | 'reset' | 'ended' | 'overflow' | 'window'

export class TunnelError extends Error {
  override readonly name = 'TunnelError'
  readonly code: TunnelErrorCode

  constructor(code: TunnelErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
