/**
 * Starts a control plane for tests with a fake kubelet behind it, and the Node, pods and Services that lead to the
 * kubelet.
 */
import { connect as connectTls, type TLSSocket } from 'node:tls'

import type { Network } from '#apiserver/connect/address-rule.ts'
import type { Settings } from '#control-plane/flags/flags.ts'
import { realClock } from '#lib/clock.ts'
import { connectWebSocket, type WebSocketConnection } from '#lib/http/websocket.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import { fetchFrom } from '../fetch-from.ts'
import { kubeletTls, type StandInKubelet, startStandInKubelet } from './stand-in-kubelet.ts'

export interface ConnectedPlane extends AsyncDisposable {
  readonly plane: ControlPlane
  readonly kubelet: StandInKubelet
  /** The global fetch with the right CA and an administrator's token. */
  fetch(path: string, init?: RequestInit): Promise<Response>
  /** Default token: an administrator's. */
  webSocket(path: string, protocols?: readonly string[], token?: string): Promise<WebSocketConnection>
  readonly stop: () => Promise<void>
}

export interface PlaneOptions {
  readonly network?: Network
  readonly settings?: Partial<Settings>
  /** The client certificate of the API server for kubelets, and the CA for theirs. */
  readonly kubeletFiles?: ReadonlyMap<string, string>
}

/** A user who may get everything and create nothing. */
export const READER = 'reader'

const noNames: Network = { lookup: (host) => Promise.reject(new Error(`lookup ${host}: no such host`)) }

export const KUBELET_FILES: ReadonlyMap<string, string> = new Map([
  ['kubelet-ca', kubeletTls.ca],
  ['kubelet-certificate', kubeletTls.certificate],
  ['kubelet-key', kubeletTls.key],
])

export async function startConnectedPlane(options: PlaneOptions = {}): Promise<ConnectedPlane> {
  const kubelet = await startStandInKubelet()
  const { network = noNames, kubeletFiles = KUBELET_FILES } = options
  const tokens = new Map([['tokens.csv', `admin,admin,admin,"system:masters"\n${READER},${READER},${READER}\n`]])
  const plane = await startControlPlane({
    network,
    files: { get: (path: string) => kubeletFiles.get(path) ?? tokens.get(path) } as ReadonlyMap<string, string>,
    settings: {
      'kubelet-certificate-authority': 'kubelet-ca',
      'kubelet-client-certificate': 'kubelet-certificate',
      'kubelet-client-key': 'kubelet-key',
      'kubelet-port': kubelet.port,
      'kubelet-preferred-address-types': ['InternalIP', 'Hostname'],
      'kubelet-timeout': 2000,
      ...options.settings,
    },
  })
  await letRead(plane)
  const stop = async (): Promise<void> => {
    await plane.stop()
    await kubelet[Symbol.asyncDispose]()
  }
  return {
    plane,
    kubelet,
    fetch: (path, init) => fetchFrom(plane, path, init),
    webSocket: (path, protocols = [], token = plane.token) =>
      connectWebSocket({
        url: `${plane.url.replace('http', 'ws')}${path}`,
        protocols,
        clock: realClock,
        headers: { authorization: `Bearer ${token}` },
        tls: { ca: plane.ca },
      }),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

async function letRead(plane: ControlPlane): Promise<void> {
  const path = '/apis/rbac.authorization.k8s.io/v1'
  const rules = [{ apiGroups: ['*'], resources: ['*'], verbs: ['get'] }]
  await create(plane, `${path}/clusterroles`, { metadata: { name: READER }, rules })
  const apiGroup = 'rbac.authorization.k8s.io'
  await create(plane, `${path}/clusterrolebindings`, {
    metadata: { name: READER },
    roleRef: { apiGroup, kind: 'ClusterRole', name: READER },
    subjects: [{ apiGroup, kind: 'User', name: READER }],
  })
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
export function dialPlane({ plane }: ConnectedPlane): TLSSocket {
  const socket = connectTls({ host: '127.0.0.1', port: plane.running.port, ca: plane.ca })
  socket.on('error', () => undefined)
  return socket
}

/** The head of a request that wants to go on in another protocol. */
export function upgradeRequest(method: string, path: string, headers: readonly string[]): string {
  const known = ['Host: plane', 'Connection: Upgrade', 'Authorization: Bearer admin']
  return [`${method} ${path} HTTP/1.1`, ...known, ...headers, '', ''].join('\r\n')
}

export const WEBSOCKET: readonly string[] = [
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]

export const SPDY: readonly string[] = ['Upgrade: SPDY/3.1', 'X-Stream-Protocol-Version: v4.channel.k8s.io']

export const PODS = '/api/v1/namespaces/default/pods'
