/**
 * Forwards requests of the management server to the API server of this cluster, with the agent's credentials, which
 * never leave the cluster.
 */
import type { Duplex } from 'node:stream'

import type { Connection } from '#client/connection/connection.ts'
import { forward } from '#component/forwarding/forward.ts'
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import type { Logger } from '#lib/log/log.ts'
import { createRequestServer } from '#lib/tunnel/request-server.ts'
import { badRequestError, forbiddenError, serviceUnavailableError } from '#meta/status-errors.ts'
import type { StatusError } from '#meta/status.ts'

import { callerOf } from './caller.ts'

export interface ApiProxyOptions {
  readonly connection: Pick<Connection, 'transport' | 'upgrade' | 'server'>
  readonly clock: Clock
  readonly log: Logger
}

export interface ApiProxy {
  /** Serves the request on a stream with the protocol `request`. */
  accept(stream: Duplex): void
  close(): Promise<void>
}

const GRACE_MS = 2000

export function createApiProxy({ connection, clock, log }: ApiProxyOptions): ApiProxy {
  const client = { request: connection.transport.request, upgrade: connection.upgrade }
  const { origin, pathname } = new URL(connection.server)
  const base = pathname.replace(/\/$/, '')
  const server = createRequestServer({
    clock,
    upgrades: ['websocket', 'spdy/3.1'],
    onError: (error) => log.error(error, 'Failed to forward a request of the management server'),
    async serve(exchange) {
      const caller = callerOf(exchange)
      if ('refused' in caller) return answer(exchange, forbiddenError({ group: '', resource: '' }, '', caller.refused))
      if (!isPlainPath(exchange.path))
        return answer(exchange, badRequestError('the path can be read in more than one way'))
      const headers = { 'impersonate-user': caller.user, 'impersonate-group': caller.groups }
      try {
        await forward(exchange, { client, clock, url: origin, path: base + exchange.path, headers, isWithheld })
      } catch (error) {
        if (exchange.isAnswered || exchange.signal.aborted) throw error
        answer(
          exchange,
          serviceUnavailableError(`the API server of the cluster cannot be reached: ${(error as Error).message}`),
        )
      }
    },
  })
  return { accept: (stream) => server.accept(stream), close: () => server.close(GRACE_MS) }
}

/** Below the path of the kubeconfig's server, and with no other host. */
function isPlainPath(target: string): boolean {
  const [path = ''] = target.split('?')
  return path.startsWith('/') && !/\/(?:\.|%2e){1,2}(?:\/|%2f|$)|\\|%5c|\/\//i.test(path)
}

/** No credential of people passes, whatever the server sends. */
function isWithheld(name: string): boolean {
  return name === 'cookie' || name.includes('_')
}

function answer(exchange: Exchange, { status }: StatusError): void {
  exchange.respond(status.code ?? 500, ['Content-Type', 'application/json'], JSON.stringify(status))
}
