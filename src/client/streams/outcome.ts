/** Parses the outcome of a remote command, which the server reports on the error stream. Pure. */
import { goQuote } from '#lib/go/text.ts'
import { parseJson } from '#lib/json/json.ts'
import { isJsonObject, type JsonValue } from '#lib/json/value.ts'
import type { Status } from '#meta/status.ts'

/** The command exited with a non-zero code. */
export class RemoteExitError extends Error {
  override readonly name = 'RemoteExitError'
  readonly exitCode: number

  constructor(exitCode: number) {
    super(`command terminated with exit code ${exitCode}`)
    this.exitCode = exitCode
  }
}

/** Undefined for success or an empty report. */
export function failureOf(reported: Buffer): Error | undefined {
  if (reported.length === 0) return undefined
  const text = reported.toString()
  const status = statusIn(text)
  if (status === undefined) return protocolError(`invalid character in ${goQuote(text)}`)
  if (status.status === 'Success') return undefined
  if (status.status !== 'Failure') return protocolError('unknown error')
  if (status.reason !== 'NonZeroExitCode') return new Error(status.message ?? '')
  if (status.details === undefined) return protocolError('details must be set')
  const cause = status.details.causes?.find(({ reason }) => reason === 'ExitCode')
  if (cause === undefined) return protocolError('no ExitCode cause given')
  const { message = '' } = cause
  const code = Number(message)
  if (!/^\d+$/.test(message) || code > 255) return protocolError(`invalid exit code value ${goQuote(message)}`)
  return new RemoteExitError(code)
}

function statusIn(text: string): Status | undefined {
  try {
    const value: JsonValue = parseJson(text)
    return isJsonObject(value) ? (value as unknown as Status) : undefined
  } catch {
    return undefined
  }
}

function protocolError(reason: string): Error {
  return new Error(`error stream protocol error: ${reason}`)
}
