/**
 * What goes wrong, and how kubectl says so: one place decides what is printed and with which code the process ends, as
 * upstream's CheckErr does. A mistake of the user is a `KubectlError`, an answer of the server a `StatusError`.
 */
import { goQuote } from '#lib/go-text.ts'
import { HttpError } from '#lib/http/http-error.ts'
import { isNotFound, type Status, type StatusCause, StatusError } from '#meta/status.ts'
import { ConfigError, InvalidConfigError } from '#model/kubeconfig/config-error.ts'

import { escapeTerminal } from './terminal-text.ts'

/** Printed as `error: message`. */
export class KubectlError extends Error {
  override readonly name: string = 'KubectlError'
}

/** Ends the process with this code; prints the message unless it is empty. */
export class ExitError extends Error {
  override readonly name = 'ExitError'
  readonly exitCode: number

  constructor(exitCode: number, message = '') {
    super(message)
    this.exitCode = exitCode
  }
}

/** No connection, as Go's url.Error: which server was asked, and why it cannot be had. */
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

/** Several at once; each gets a line. */
export class Failures extends Error {
  override readonly name = 'Failures'
  readonly errors: readonly Error[]

  constructor(errors: readonly Error[]) {
    super(joined(errors))
    this.errors = errors
  }
}

/** Nothing when there are none, the one there is, or all of them together. */
export function failuresOf(errors: readonly Error[]): Error | undefined {
  return errors.length < 2 ? errors[0] : new Failures(errors)
}

/** As Go prints an aggregate: each text once, nested ones in the same row. */
function joined(errors: readonly Error[]): string {
  const texts = (all: readonly Error[]): string[] =>
    all.flatMap((error) => (error instanceof Failures ? texts(error.errors) : error.message))
  const distinct = [...new Set(texts(errors))]
  return distinct.length === 1 ? distinct.join('') : `[${distinct.join(', ')}]`
}

/** What is left when it does not matter that something is not there. */
export function withoutMissing(thrown: unknown): Error | undefined {
  const error = asError(thrown)
  if (!(error instanceof Failures)) return isNotFound(error) ? undefined : error
  return failuresOf(error.errors.flatMap((one) => withoutMissing(one) ?? []))
}

export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

/** The same failure, with where the object came from. */
export function withSource(verb: string, source: string, error: Error): Error {
  if (source === '') return error
  const said = (message: string): string => `error when ${verb} ${goQuote(source)}: ${message}`
  if (error instanceof StatusError) return new StatusError({ ...error.status, message: said(error.message) })
  return new KubectlError(said(error.message), { cause: error })
}

/** What is printed on standard error, and the exit code. */
export interface Report {
  readonly text: string
  readonly exitCode: number
}

export function reportOf(thrown: unknown): Report {
  const error = thrown instanceof Failures && thrown.errors.length === 1 ? (thrown.errors[0] as Error) : asError(thrown)
  if (error instanceof ExitError) return { text: ended(error.message), exitCode: error.exitCode }
  return { text: ended(textOf(error)), exitCode: 1 }
}

/** Servers have a say in it. */
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

/** One of several: without the word in front that a single mistake has. */
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

/** A single problem is an error like any other, but for a context that is not there. */
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
