/** A simulated cloud for tests: its machines, load balancers, routes and failures, and a record of the calls to it. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Machine {
  readonly providerId?: string
  readonly instanceType?: string
  readonly zone?: string
  readonly region?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly addresses?: readonly { readonly type: string; readonly address: string }[]
  readonly isShutDown?: boolean
  /** It is there, and nothing is known of it yet. */
  readonly isUnknown?: boolean
}

interface Asked {
  readonly node?: string
  readonly service?: string
  readonly nodes?: readonly string[] | null
  readonly ports?: number
  readonly destination?: string
  readonly addresses?: readonly object[]
}

export interface PretendRoute {
  readonly name: string
  readonly node: string
  readonly destination: string
  readonly addresses: readonly object[]
  readonly tellsAddresses?: boolean
  readonly isBlackhole?: boolean
}

export class PretendCloud implements AsyncDisposable {
  readonly machines: Map<string, Machine> = new Map()
  readonly balancers: Set<string> = new Set()
  readonly routes: Map<string, PretendRoute> = new Map()
  /** Texts of errors, by method and what it is about: `ensure default/web`. */
  readonly failures: Map<string, string> = new Map()
  /** The changes as text. */
  readonly deeds: string[] = []
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { status, text } = this.#answer((request.url ?? '').slice(1), JSON.parse(Buffer.concat(chunks).toString()))
      response.writeHead(status).end(text)
    })
  })

  /** Starts the HTTP server of the cloud and returns its address. */
  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #answer(method: string, asked: Asked): { readonly status: number; readonly text: string } {
    const failure = this.failures.get(`${method} ${asked.service ?? asked.node ?? ''}`)
    if (failure === 'elsewhere') return { status: 501, text: 'implemented by alternate to cloud provider' }
    if (failure !== undefined) return { status: 500, text: failure }
    // Upstream's manager does not live through a node that is open and of which nothing is known.
    if (method === 'metadata' && !this.machines.has(asked.node ?? ''))
      return { status: 500, text: 'instance not found' }
    const result = METHODS[method]?.(this, asked as Required<Asked>)
    return { status: 200, text: JSON.stringify(result ?? null) }
  }
}

type Method = (cloud: PretendCloud, asked: Required<Asked>) => unknown

const STATUS = { ingress: [{ ip: '203.0.113.9' }] }

function balance(deed: string): Method {
  return ({ balancers, deeds }, { service, nodes, ports }) => {
    balancers.add(service)
    deeds.push(`${deed} ${service}: ${[...(nodes ?? [])].sort().join(' ')}; ${ports} ports`)
    return STATUS
  }
}

const METHODS: Readonly<Record<string, Method | undefined>> = {
  exists: ({ machines }, { node }) => machines.has(node),
  isShutDown: ({ machines }, { node }) => machines.get(node)?.isShutDown ?? false,
  metadata: ({ machines }, { node }) => {
    const { isUnknown = false, providerId = '', ...known } = machines.get(node) ?? {}
    return isUnknown ? null : { providerId, ...known }
  },
  find: ({ balancers }, { service }) => (balancers.has(service) ? STATUS : null),
  ensure: balance('ensure'),
  update: balance('update'),
  remove: ({ balancers, deeds }, { service }) => {
    balancers.delete(service)
    deeds.push(`remove ${service}`)
  },
  listRoutes: ({ routes }) => [...routes.values()],
  createRoute: ({ routes, deeds }, { node, destination, addresses }) => {
    routes.set(`${node} ${destination}`, { name: destination, node, destination, addresses, tellsAddresses: true })
    deeds.push(`route ${destination} to ${node} at ${JSON.stringify(addresses)}`)
  },
  removeRoute: ({ routes, deeds }, { node, destination }) => {
    routes.delete(`${node} ${destination}`)
    deeds.push(`no route ${destination} to ${node}`)
  },
}
