/** A minimal server for tests of the agent: one node, its plan, and the tunnel to it. */
import { createHash } from 'node:crypto'
import type { Duplex } from 'node:stream'

import { realClock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { createHttpServer } from '#lib/http/server.ts'
import { acceptWebSocket, type WebSocketConnection } from '#lib/http/websocket.ts'
import { secureRandom } from '#lib/random.ts'
import { Tunnel, TUNNEL_PROTOCOL } from '#lib/tunnel/tunnel.ts'
import { createAuthority } from '#lib/x509/authority.ts'

export class AgentServer implements AsyncDisposable {
  /** `register`, `connect` and `config` as they came. */
  readonly asked: string[] = []
  readonly token = 'a-token'
  /** The parameters of the node's last request. */
  parameters: unknown
  /** Status and body of the answer to who asks for the plan. */
  plan: readonly [status: number, body: string] = [503, '']
  readonly #authority = createAuthority({ commonName: 'server-ca' }, { clock: realClock, random: secureRandom })
  readonly #server
  #connection: WebSocketConnection | undefined
  #tunnel: Tunnel | undefined
  readonly #address: string
  #port = 0

  constructor(address = '127.0.0.1') {
    this.#address = address
    const issued = this.#authority.issue({
      commonName: 'server',
      purpose: 'server',
      names: { ips: [address] },
    })
    this.#server = createHttpServer({
      clock: realClock,
      tls: { certificate: issued.certificatePem, key: issued.keyPem },
      upgrades: ['websocket'],
      serve: (exchange) => this.#serve(exchange),
    })
  }

  async start(): Promise<void> {
    const bound = await this.#server.listen({ host: this.#address, port: 0 })
    if ('port' in bound) this.#port = bound.port
  }

  get url(): string {
    return `https://${this.#address}:${this.#port}`
  }

  /** As people make it: `jq -r .value | sha256sum`. */
  get caChecksum(): string {
    return createHash('sha256').update(`${this.#authority.certificatePem}\n`).digest('hex')
  }

  dial(address: string): Duplex {
    if (this.#tunnel === undefined) throw new Error('There is no tunnel')
    return this.#tunnel.dial('tcp', address)
  }

  /** As a network does, without a word. */
  cut(): void {
    this.#connection?.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await this.#server.drain(100)
  }

  async #serve(exchange: Exchange): Promise<void> {
    const { pathname } = new URL(exchange.path, 'https://server')
    if (pathname === '/v3/settings/cacerts') {
      const body = JSON.stringify({ value: this.#authority.certificatePem })
      return exchange.respond(200, ['content-type', 'application/json'], body)
    }
    if (exchange.headers['x-api-tunnel-token'] !== this.token) return exchange.respond(401, [], 'no such token')
    const text = Buffer.from(String(exchange.headers['x-api-tunnel-params']), 'base64').toString()
    this.parameters = JSON.parse(text) as unknown
    this.asked.push(pathname.slice('/v3/connect'.length) || '/')
    if (pathname === '/v3/connect/config') return exchange.respond(this.plan[0], [], this.plan[1])
    this.#connection = await acceptWebSocket(exchange, {
      clock: realClock,
      choose: (offered) => offered.find((name) => name === TUNNEL_PROTOCOL),
    })
    this.#tunnel = new Tunnel(this.#connection, { clock: realClock })
    await this.#tunnel.serve().catch(() => undefined)
  }
}
