/** Serves the local health port (10248), without TLS and authentication. */
import type { Clock } from '#lib/clock.ts'
import { createHttpServer } from '#lib/http/server.ts'

import { textAnswer } from './answer.ts'

export interface HealthPortOptions {
  readonly clock: Clock
  readonly host: string
  readonly port: number
}

const ANSWERS: Readonly<Record<string, string>> = {
  '/healthz': 'ok',
  '/healthz/ping': 'ok',
  '/healthz?verbose': '[+]ping ok\nhealthz check passed\n',
}

/** Rejects when the port is in use. */
export async function openHealthPort(
  { clock, host, port }: HealthPortOptions,
  closing: AsyncDisposableStack,
): Promise<{ readonly port: number }> {
  const server = createHttpServer({
    clock,
    serve(exchange) {
      const { pathname, searchParams } = new URL(exchange.path, 'http://kubelet')
      const text = ANSWERS[searchParams.has('verbose') ? `${pathname}?verbose` : pathname]
      const answer = text === undefined ? textAnswer(404, '404 page not found\n') : textAnswer(200, text)
      exchange.respond(answer.status, answer.headers, answer.body)
    },
  })
  const bound = await server.listen({ host, port })
  closing.defer(() => server.drain(0))
  return { port: 'port' in bound ? bound.port : 0 }
}
