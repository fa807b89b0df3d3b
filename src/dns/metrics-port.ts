/** Serves `/metrics`, `/health` and `/ready`, as CoreDNS. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

import { METRICS_CONTENT_TYPE, type Registry } from '#lib/metrics/metrics.ts'

export interface MetricsPortOptions {
  readonly address: string
  readonly port: number
  readonly registry: Registry
  readonly isReady: () => boolean
}

export interface MetricsPort {
  readonly port: number
  close(): Promise<void>
}

const MAX_CONNECTIONS = 64

export async function serveMetrics({ address, port, registry, isReady }: MetricsPortOptions): Promise<MetricsPort> {
  const pages: Readonly<Record<string, () => readonly [code: number, text: string]>> = {
    '/metrics': () => [200, registry.render()],
    '/health': () => [200, 'OK'],
    '/ready': () => (isReady() ? [200, 'OK'] : [503, 'kubernetes']),
  }
  const server: Server = createServer((request, response) => {
    const [code, text] = pages[request.url?.split('?', 1)[0] ?? '']?.() ?? [404, '404 page not found\n']
    response.writeHead(code, { 'content-type': METRICS_CONTENT_TYPE }).end(text)
  })
  server.maxConnections = MAX_CONNECTIONS
  server.listen({ host: address, port, exclusive: true })
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
