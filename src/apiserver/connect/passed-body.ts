/** The body of a request that is passed on: piece by piece, no faster than the other server takes it. */
import type { HttpRequest } from '#lib/http/client.ts'
import type { Exchange } from '#lib/http/exchange.ts'

/** For the request that passes it on; nothing where there is no body. */
export function bodyOf(exchange: Exchange): Pick<HttpRequest, 'body'> {
  return hasBody(exchange) ? { body: unowned(exchange.body()) } : {}
}

const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** HTTP/2 does not say whether a body follows; those who usually have one get an empty one passed on. */
function hasBody({ headers, version, method }: Exchange): boolean {
  const length = headers['content-length']
  if (length !== undefined) return Number(length) > 0
  return headers['transfer-encoding'] !== undefined || (version === '2' && !BODILESS.has(method))
}

/** A server that answers before it has read everything must not end the client's connection. */
async function* unowned(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const iterator = source[Symbol.asyncIterator]()
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value
}
