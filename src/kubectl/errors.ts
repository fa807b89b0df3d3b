/**
 * Error classes and their output: decides the text and the exit code like upstream's CheckErr. A user error is a
 * `KubectlError`, a server's answer a `StatusError`.
 */
import { goQuote } from '#lib/go/text.ts'
import { HttpError } from '#lib/http/http-error.ts'
import { isNotFound, type Status, type StatusCause, StatusError } from '#meta/status.ts'
import { ConfigError, InvalidConfigError } from '#model/kubeconfig/config-error.ts'

import { escapeTerminal } from './print/terminal-text.ts'

/** Printed as `error: message`. */
export class KubectlError extends Error {
  override readonly name: string = 'KubectlError'
}

/** Exits with this code; prints the message unless it is empty. */
export class ExitError extends Error {
  override readonly name = 'ExitError'
  readonly exitCode: number

  constructor(exitCode: number, message = '') {
    super(message)
    this.exitCode = exitCode
  }
}

/** A failed connection in the form of Go's url.Error: the URL and the cause. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
  readonly url: string
  readonly reason: string

  constructor(verb: string, url: string, reason: string, options?: ErrorOptions) {
    super(`${verb} ${goQuote(url)}: ${reason}`, options)
    this.url = url
    this.reason = reason
  }
}

/** Several errors; each is printed on a line. */
export class Failures extends Error {
  override readonly name = 'Failures'
  readonly errors: readonly Error[]

  constructor(errors: readonly Error[]) {
    super(joined(errors))
    this.errors = errors
  }
}

/** Undefined without errors, a single error unchanged, or all of them combined. */
export function failuresOf(errors: readonly Error[]): Error | undefined {
  return errors.length < 2 ? errors[0] : new Failures(errors)
}

/** Go's form of an aggregate: distinct texts, with nested aggregates flattened. */
function joined(errors: readonly Error[]): string {
  const texts = (all: readonly Error[]): string[] =>
    all.flatMap((error) => (error instanceof Failures ? texts(error.errors) : error.message))
  const distinct = [...new Set(texts(errors))]
  return distinct.length === 1 ? distinct.join('') : `[${distinct.join(', ')}]`
}

/** Removes NotFound errors. */
export function withoutMissing(thrown: unknown): Error | undefined {
  const error = asError(thrown)
  if (!(error instanceof Failures)) return isNotFound(error) ? undefined : error
  return failuresOf(error.errors.flatMap((one) => withoutMissing(one) ?? []))
}

export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

/** The same error with the source of the object in front. */
export function withSource(verb: string, source: string, error: Error): Error {
  if (source === '') return error
  const withSource = (message: string): string => `error when ${verb} ${goQuote(source)}: ${message}`
  if (error instanceof StatusError) return new StatusError({ ...error.status, message: withSource(error.message) })
  return new KubectlError(withSource(error.message), { cause: error })
}

/** The text for standard error, and the exit code. */
export interface Report {
  readonly text: string
  readonly exitCode: number
}

export function reportOf(thrown: unknown): Report {
  const error = thrown instanceof Failures && thrown.errors.length === 1 ? (thrown.errors[0] as Error) : asError(thrown)
  if (error instanceof ExitError) return { text: ended(error.message), exitCode: error.exitCode }
  return { text: ended(textOf(error)), exitCode: 1 }
}

/** The server's answer decides. */
function ended(text: string): string {
  return escapeTerminal(text === '' || text.endsWith('\n') ? text : `${text}\n`)
}

function textOf(error: Error): string {
  if (error instanceof StatusError && error.status.reason === 'Invalid') return invalidText(error.status)
  if (error instanceof Failures) return error.errors.map((one) => `${messageOf(one)}\n`).join('')
  return standardText(error) ?? (error.message.startsWith('error: ') ? error.message : `error: ${error.message}`)
}

function invalidText({ details, message = '' }: Status): string {
  if (details === undefined) return `The request is invalid${message === '' ? '' : `: ${message}`}`
  const { kind = '', name = '', causes = [] } = details
  let text = 'The request is invalid'
  if (kind !== '' || name !== '') text = `The ${kind} ${goQuote(name)} is invalid`
  else if (message !== '' && causes.length === 0) text += `: ${message}`
  return causes.length === 0 ? text : multiline(`${text}: `, causeTexts(causes))
}

function causeTexts(causes: readonly StatusCause[]): string[] {
  return [...new Set(causes.map(({ field = '', message = '' }) => `${field}: ${message}`))]
}

function multiline(prefix: string, texts: readonly string[]): string {
  if (texts.length === 1) return `${prefix}${texts.join('')}\n`
  return `${prefix}\n${texts.map((text) => `* ${text}\n`).join('')}`
}

/** One of several errors, without the "error:" prefix of a single one. */
export function messageOf(error: Error): string {
  return standardText(error) ?? error.message
}

function standardText(error: Error): string | undefined {
  if (error instanceof StatusError) return statusText(error)
  if (error instanceof ConnectionError) return connectionText(error)
  if (error instanceof InvalidConfigError) return configText(error)
  const isUnanswered = error instanceof ConfigError && error.message.startsWith('getting credentials: ')
  if (isUnanswered) return `Unable to connect to the server: ${error.message}`
  if (error instanceof HttpError) return `Unable to connect to the server: ${error.message}`
  return undefined
}

/** A single configuration problem is printed like other errors, except for a missing context. */
function configText({ problems }: InvalidConfigError): string {
  const [first = ''] = problems
  const isPlain = problems.length === 1 && !first.startsWith('context was not found')
  return isPlain ? `error: ${first}` : multiline('Error in configuration: ', problems)
}

function statusText({ status, message }: StatusError): string {
  const { reason = '' } = status
  if (reason === 'Unauthorized') return `error: You must be logged in to the server (${status.message ?? ''})`
  return reason === '' ? `Error from server: ${message}` : `Error from server (${reason}): ${message}`
}

function connectionText({ url, reason }: ConnectionError): string {
  if (!reason.includes('connection refused')) return `Unable to connect to the server: ${reason}`
  const host = URL.canParse(url) ? new URL(url).host : url
  return `The connection to the server ${host} was refused - did you specify the right host or port?`
}
