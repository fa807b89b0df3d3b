/** A control plane for tests: memory storage, everything allowed, plain HTTP on a port of its own, gone when disposed. */
import { startApiServer, type ApiServer } from '#apiserver/apiserver.ts'
import type { Connectors } from '#apiserver/dispatch.ts'
import { allowAll, type Authorize } from '#apiserver/filters.ts'
import { admitAll } from '#apiserver/registry/admission.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { Resource } from '#apiserver/registry/resource.ts'
import type { FilterOptions } from '#apiserver/server.ts'
import { type Clock, realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { convert } from '#model/conversion/conversion.ts'
import { bindPod } from '#resources/core/pod/binding.ts'
import { createEvictionHandler } from '#resources/core/pod/eviction.ts'
import { createAddressBook, serviceRanges } from '#resources/core/service/address-book.ts'
import { createServiceAllocator, DEFAULT_SERVICE_CIDRS } from '#resources/core/service/allocator.ts'
import { createMemoryLedger } from '#resources/core/service/node-ports.ts'
import { createResources } from '#resources/index.ts'
import { createAtRest } from '#storage/encryption/at-rest.ts'
import { NO_ENCRYPTION } from '#storage/encryption/config.ts'
import { createMemoryBackend } from '#storage/memory.ts'

export interface ControlPlaneOptions {
  readonly clock?: Clock
  /** Default: every kind. */
  readonly resources?: readonly Resource[]
  /** Besides bindings and evictions. */
  readonly connectors?: Connectors
  /** Default: everybody may everything. */
  readonly authorize?: Authorize
  readonly filters?: FilterOptions
}

export interface ControlPlane extends AsyncDisposable {
  /** `http://127.0.0.1:port`. */
  readonly url: string
  readonly server: ApiServer
  /** One request; `body` is sent as JSON unless it is text. */
  request(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<ControlPlaneResponse>
  stop(): Promise<void>
}

type JsonMap = Record<string, unknown>

export interface ControlPlaneResponse {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Parsed; throws when the answer is not JSON. */
  json(): JsonMap
}

export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const { clock = realClock } = options
  const random = createSeededRandom(1)
  const registry = (): Registry => server.registry
  const services = createServiceAllocator({
    book: createAddressBook(registry),
    ports: createMemoryLedger(),
    random,
    serviceCidrs: DEFAULT_SERVICE_CIDRS,
    rangeObjects: () => serviceRanges(registry),
  })
  const resources = options.resources ?? createResources({ services })
  const backend = createMemoryBackend({ clock, random })
  const server: ApiServer = await startApiServer({
    backend,
    clock,
    random,
    resources,
    reviews: [],
    connectors: {
      'pods/binding': { create: bindPod },
      'pods/eviction': { create: createEvictionHandler(registry) },
      ...options.connectors,
    },
    ...(options.filters === undefined ? {} : { filters: options.filters }),
    admission: admitAll,
    atRest: createAtRest(NO_ENCRYPTION, random),
    convert,
    authenticate: () => () => ({ name: 'test', uid: '', groups: ['system:masters'], extra: {} }),
    authorize: () => options.authorize ?? allowAll,
    isServed: () => true,
    isEnabled: () => true,
    allowPrivileged: true,
    bootstrap: () => Promise.resolve(),
    versionInfo: { gitVersion: 'v0.0.0-test' },
    onError: (error) => process.emitWarning(error as Error),
  })
  const address = await server.listen({ host: '127.0.0.1', port: 0 }, undefined)
  if (!('port' in address)) throw new Error('A TCP port was asked for')
  const { port } = address
  const url = `http://127.0.0.1:${port}`
  const stop = async (): Promise<void> => {
    await server.stop(1000)
    await backend.close()
  }
  return { url, server, request: (...args) => send(url, ...args), stop, [Symbol.asyncDispose]: stop }
}

// oxlint-disable-next-line max-params
async function send(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<ControlPlaneResponse> {
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const answer = await fetch(url + path, {
    method,
    headers: { ...(text === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(text === undefined ? {} : { body: text }),
  })
  const received = await answer.text()
  return { status: answer.status, headers: answer.headers, text: received, json: () => JSON.parse(received) as JsonMap }
}
