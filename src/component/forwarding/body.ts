/** Streams the body of a proxied request to the backend, with backpressure. */
import type { HttpRequest } from '#lib/http/client.ts'
import type { Exchange } from '#lib/http/exchange.ts'

/** The body for the proxied request; undefined if there is none. */
export function bodyOf(exchange: Exchange): Pick<HttpRequest, 'body'> {
  return hasBody(exchange) ? { body: unowned(exchange.body()) } : {}
}

const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** HTTP/2 does not announce a body; methods that usually have one get an empty body. */
function hasBody({ headers, version, method }: Exchange): boolean {
  const length = headers['content-length']
  if (length !== undefined) return Number(length) > 0
  return headers['transfer-encoding'] !== undefined || (version === '2' && !BODILESS.has(method))
}

/** A backend that responds before it has read everything must not end the client's connection. */
async function* unowned(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const iterator = source[Symbol.asyncIterator]()
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value
}
