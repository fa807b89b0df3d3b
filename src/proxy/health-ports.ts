/**
 * Serves `healthCheckNodePort` of each Service: external load balancers check there whether this node has local
 * endpoints.
 */
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { createHttpServer, type HttpServer } from '#lib/http/server.ts'
import type { Logger } from '#lib/log/log.ts'

import type { RoutedService } from './router.ts'

export interface HealthPortsOptions {
  readonly clock: Clock
  readonly log: Logger
  /** The listen addresses. */
  readonly hosts: () => readonly string[]
  /** Whether the rules are up to date. */
  readonly isHealthy: () => boolean
}

interface HealthCheckServer {
  readonly port: number
  /** Ready endpoints on this node. */
  endpoints: number
  readonly servers: readonly HttpServer[]
}

const GRACE_MS = 0

export class HealthPorts {
  readonly #options: HealthPortsOptions
  readonly #watched = new Map<string, HealthCheckServer>()
  #working: Promise<void> = Promise.resolve()

  constructor(options: HealthPortsOptions) {
    this.#options = options
  }

  /** Sequential, because a released port may be reused by the next Service. */
  update(routed: readonly RoutedService[]): Promise<void> {
    const before = this.#working
    this.#working = this.#follow(before, routed)
    return this.#working
  }

  async #follow(before: Promise<void>, routed: readonly RoutedService[]): Promise<void> {
    await before
    for (const one of routed) await this.#close(one)
    for (const one of routed) await this.#open(one)
  }

  async stop(): Promise<void> {
    await this.#working
    for (const { servers } of this.#watched.values()) for (const server of servers) await server.drain(GRACE_MS)
    this.#watched.clear()
  }

  async #close(routed: RoutedService): Promise<void> {
    const known = this.#watched.get(routed.service)
    if (known === undefined || known.port === healthCheckOf(routed).port) return
    this.#watched.delete(routed.service)
    for (const server of known.servers) await server.drain(GRACE_MS)
  }

  async #open(routed: RoutedService): Promise<void> {
    const { service } = routed
    const { port, endpoints } = healthCheckOf(routed)
    const known = this.#watched.get(service)
    if (known !== undefined) known.endpoints = endpoints
    if (known !== undefined || port === 0) return
    const { clock, hosts, log } = this.#options
    const servers: HttpServer[] = []
    try {
      for (const host of hosts()) {
        const serve = (exchange: Exchange): Promise<void> => Promise.resolve(this.#answer(service, exchange))
        const server = createHttpServer({
          serve,
          clock,
          onError: (error) => log.error(error, 'Failed to serve the health check of a Service'),
        })
        servers.push(server)
        await server.listen({ host, port })
      }
      this.#watched.set(service, { port, endpoints, servers })
    } catch (error) {
      for (const server of servers) await server.drain(GRACE_MS)
      log.error(error, 'Failed to start healthcheck', { service, port })
    }
  }

  #answer(service: string, exchange: Exchange): void {
    const { endpoints = 0 } = this.#watched.get(service) ?? {}
    const isHealthy = this.#options.isHealthy()
    const [namespace = '', name = ''] = service.split('/')
    const headers = ['Content-Type', 'application/json', 'X-Content-Type-Options', 'nosniff']
    const body = `{\n\t"service": {\n\t\t"namespace": ${JSON.stringify(namespace)},\n\t\t"name": ${JSON.stringify(name)}\n\t},\n\t"localEndpoints": ${endpoints},\n\t"serviceProxyHealthy": ${isHealthy}\n}`
    exchange.respond(
      endpoints > 0 && isHealthy ? 200 : 503,
      [...headers, 'X-Load-Balancing-Endpoint-Weight', String(endpoints)],
      body,
    )
  }
}

/** 0: none. */
function healthCheckOf({ routes }: RoutedService): { readonly port: number; readonly endpoints: number } {
  const all = [...routes.values()].flat()
  const port = all.find(({ port: { healthCheckNodePort } }) => healthCheckNodePort !== 0)?.port.healthCheckNodePort ?? 0
  return { port, endpoints: new Set(all.flatMap(({ readyHere }) => readyHere)).size }
}
