/**
 * Answers cross-origin requests: `--cors-allowed-origins` lists the web origins that may call this server from a
 * browser.
 */
import type { Exchange, HeaderList } from '#lib/http/exchange.ts'
import { compileRegexp } from '#lib/regexp.ts'

/** The headers for an answer to a page of an allowed origin; undefined for all others. */
export type Cors = (exchange: Pick<Exchange, 'headers'>) => HeaderList | undefined

/** `patterns` are regular expressions in Go's syntax, matched anywhere in the origin. Throws for an invalid one. */
export function createCors(patterns: readonly string[]): Cors {
  const expressions = patterns.map(compileRegexp)
  return ({ headers: { origin } }) => {
    if (origin === undefined || origin === '') return undefined
    if (!expressions.some((expression) => expression.test(origin))) return undefined
    return ['Access-Control-Allow-Origin', origin, ...FIXED]
  }
}

const FIXED: HeaderList = [
  'Access-Control-Allow-Methods',
  'POST, GET, OPTIONS, PUT, DELETE, PATCH',
  'Access-Control-Allow-Headers',
  'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since',
  'Access-Control-Expose-Headers',
  'Date',
  'Access-Control-Allow-Credentials',
  'true',
]

/**
 * True if a pattern anchors the host at both ends; otherwise it also matches hosts that merely contain it
 * (CVE-2022-1996). As loose as upstream's check.
 */
export function pinsHost(pattern: string): boolean {
  const pinsStart = ['^', '//'].some((mark) => pattern.includes(mark))
  return pinsStart && ['$', ':'].some((mark) => pattern.includes(mark))
}
