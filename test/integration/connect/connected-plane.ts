/** A control plane with connectors and a kubelet behind them, and the objects that lead there. */
import { connect as connectNet, type Socket } from 'node:net'

import type { Network } from '#apiserver/connect/address-rule.ts'
import { createConnectSubresources } from '#apiserver/connect/connector.ts'
import type { Authorize } from '#apiserver/filters.ts'
import type { FilterOptions } from '#apiserver/server.ts'
import { realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import type { ServerMeters } from '#model/metrics/families.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import { kubeletTls, type StandInKubelet, startStandInKubelet } from './stand-in-kubelet.ts'

export interface ConnectedPlane extends AsyncDisposable {
  readonly plane: ControlPlane
  readonly kubelet: StandInKubelet
  readonly stop: () => Promise<void>
}

export interface PlaneOptions {
  readonly authorize?: Authorize
  readonly network?: Network
  readonly filters?: FilterOptions
  readonly tls?: () => object
  readonly isEnabled?: (gate: string) => boolean
  readonly metrics?: ServerMeters
}

/** Gates as they are by default. */
const OFF: ReadonlySet<string> = new Set(['PodLogsQuerySplitStreams'])

const noNames: Network = { lookup: (host) => Promise.reject(new Error(`lookup ${host}: no such host`)) }

export async function startConnectedPlane(options: PlaneOptions = {}): Promise<ConnectedPlane> {
  const kubelet = await startStandInKubelet()
  const connect = createConnectSubresources({
    clock: realClock,
    random: createSeededRandom(1),
    kubelet: {
      tls: options.tls ?? (() => kubeletTls),
      port: kubelet.port,
      addressTypes: ['InternalIP', 'Hostname'],
      timeoutMs: 2000,
    },
    isEnabled: options.isEnabled ?? ((gate) => !OFF.has(gate)),
    network: options.network ?? noNames,
    ...(options.metrics === undefined ? {} : { metrics: options.metrics }),
  })
  const plane = await startControlPlane({
    connectors: connect.connectors,
    ...(options.authorize === undefined ? {} : { authorize: options.authorize }),
    ...(options.filters === undefined ? {} : { filters: options.filters }),
  })
  const stop = async (): Promise<void> => {
    await plane.stop()
    connect.close()
    await kubelet[Symbol.asyncDispose]()
  }
  return { plane, kubelet, stop, [Symbol.asyncDispose]: stop }
}

export interface PodPlan {
  readonly name: string
  readonly node?: string
  readonly containers?: readonly string[]
  readonly ip?: string
  readonly port?: number
}

export async function addNode(
  { plane }: ConnectedPlane,
  name: string,
  address = '127.0.0.1',
  features: readonly string[] = [],
): Promise<void> {
  const status = {
    addresses: [{ type: 'InternalIP', address }],
    ...(features.length > 0 && { declaredFeatures: features }),
  }
  await create(plane, '/api/v1/nodes', { metadata: { name }, status })
}

export async function addPod({ plane }: ConnectedPlane, plan: PodPlan): Promise<void> {
  const { name, node, containers = ['c'], ip, port } = plan
  const ports = port === undefined ? {} : { ports: [{ containerPort: port }] }
  const spec = {
    ...(node === undefined ? {} : { nodeName: node }),
    containers: containers.map((container) => ({ name: container, image: 'x', ...ports })),
  }
  await create(plane, '/api/v1/namespaces/default/pods', { metadata: { name }, spec })
  if (ip === undefined) return
  const status = { podIP: ip, podIPs: [{ ip }] }
  const path = `/api/v1/namespaces/default/pods/${name}/status`
  const answer = await plane.request('PATCH', path, { status }, { 'content-type': 'application/merge-patch+json' })
  if (answer.status !== 200) throw new Error(answer.text)
}

export async function create(plane: ControlPlane, path: string, object: object): Promise<void> {
  const answer = await plane.request('POST', path, object)
  if (answer.status !== 201) throw new Error(answer.text)
}

/** A connection of its own, for requests that a client library would not make. */
export function dialPlane({ plane }: ConnectedPlane): Socket {
  const socket = connectNet({ host: '127.0.0.1', port: Number(new URL(plane.url).port) })
  socket.on('error', () => undefined)
  return socket
}

/** The head of a request that wants to go on in another protocol. */
export function upgradeRequest(method: string, path: string, headers: readonly string[]): string {
  return [`${method} ${path} HTTP/1.1`, 'Host: plane', 'Connection: Upgrade', ...headers, '', ''].join('\r\n')
}

export const WEBSOCKET: readonly string[] = [
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]

export const SPDY: readonly string[] = ['Upgrade: SPDY/3.1', 'X-Stream-Protocol-Version: v4.channel.k8s.io']

export const PODS = '/api/v1/namespaces/default/pods'
