/** The CEL library of absolute URLs, parsed as Go's net/url parses them. */
import { parseGoUrl, parseRequestUri, type GoUrl } from '#lib/go/url.ts'

import { estimateReadKept, readFirst } from '../cost/costs.ts'
import { spendEffort } from '../effort.ts'
import { defineLibrary, free, member, type Library, type Overload } from '../library.ts'
import { BOOL, STRING, listOf, mapOf, opaque } from '../type.ts'
import { Failure, OpaqueValue, type Result } from '../value.ts'
import { listValue } from '../values/list.ts'
import { mapOfEntries } from '../values/map.ts'

const URL_TYPE = opaque('kubernetes.URL')

class UrlValue extends OpaqueValue {
  readonly typeName = 'kubernetes.URL'
  readonly url: GoUrl
  constructor(url: GoUrl) {
    super()
    this.url = url
  }
  equals(other: UrlValue): boolean {
    return this.url.text === other.url.text
  }
  override toString(): string {
    return this.url.text
  }
}

function toUrl(text: string): Result {
  const checked = parseRequestUri(text)
  const url = typeof checked === 'string' ? checked : parseGoUrl(text)
  return typeof url === 'string'
    ? new Failure(`URL parse error during conversion from string: ${url}`)
    : new UrlValue(url)
}

const getter = (id: string, get: (url: GoUrl) => string): Overload[] => [
  member(id, [URL_TYPE], STRING, { evaluate: ({ url }: UrlValue) => get(url) }),
]

function query({ url }: UrlValue): Result {
  spendEffort(url.text.length)
  return mapOfEntries([...url.query()].map(([key, values]) => [key, listValue(values)]))
}

export const urls: Library = defineLibrary('kubernetes.urls', {
  url: [free('string_to_url', [STRING], URL_TYPE, { evaluate: toUrl, cost: readFirst, estimate: estimateReadKept })],
  getScheme: getter('url_get_scheme', ({ scheme }) => scheme),
  getHost: getter('url_get_host', ({ host }) => host),
  getHostname: getter('url_get_hostname', ({ hostname }) => hostname),
  getPort: getter('url_get_port', ({ port }) => port),
  getEscapedPath: getter('url_get_escaped_path', ({ escapedPath }) => escapedPath),
  getQuery: [member('url_get_query', [URL_TYPE], mapOf(STRING, listOf(STRING)), { evaluate: query })],
  isURL: [
    free('is_url_string', [STRING], BOOL, { evaluate: (text: string) => typeof parseRequestUri(text) !== 'string' }),
  ],
})
