/**
 * The HTTP routes of agents. `/v3/connect/register` accepts a registration token and stores the hash of the agent's
 * credential; `/v3/connect` accepts that credential.
 */
import { createHash, timingSafeEqual } from 'node:crypto'

import { Secrets } from '#apis/core/v1.ts'
import { acceptWebSocket } from '#lib/http/websocket.ts'
import { Tunnel, TUNNEL_PROTOCOL } from '#lib/tunnel/tunnel.ts'
import { badRequestError, conflictError, unauthorizedError } from '#meta/status-errors.ts'
import { isNotFound } from '#meta/status.ts'

import { type Cluster, Clusters } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import { type RegistrationToken, RegistrationTokens } from '../kinds/registration-token.ts'
import { MANAGEMENT_NAMESPACE, type ManagementObjects } from '../objects.ts'
import type { Route, RouteCall } from '../port/route.ts'
import type { TunnelHub } from './tunnel-hub.ts'

export interface AgentRoutesOptions {
  readonly objects: ManagementObjects
  readonly hub: TunnelHub
  /** Called when an agent has connected, and when its last tunnel has ended. */
  readonly onChange: (cluster: string, agent: ConnectedAgent | undefined) => void
}

export interface ConnectedAgent {
  readonly uid: string
  readonly version: string
  readonly address: string
}

interface AgentParameters {
  readonly uid: string
  readonly agentVersion: string
  readonly credential: string
}

const PING_MS = 10_000
const SILENCE_MS = 25_000

export function agentRoutes(options: AgentRoutesOptions): readonly Route[] {
  const registrations = new Turns()
  const route = (
    path: string,
    identify: (call: RouteCall) => Promise<{ cluster: string; agent: ConnectedAgent }>,
  ): Route => ({
    method: 'GET',
    path,
    access: 'agent',
    async serve(call) {
      if (call.exchange.upgradeProtocol !== 'websocket')
        throw badRequestError('the request is not a WebSocket handshake')
      const { cluster, agent } = await identify(call)
      await serveTunnel(options, call, { cluster, agent })
      return { served: 101 }
    },
  })
  return [
    route('/v3/connect', (call) => connect(options, call)),
    route('/v3/connect/register', (call) => registrations.take(() => register(options, call))),
  ]
}

/**
 * One registration at a time: two with the same token, or for the same cluster, must see each other. Objects are written
 * by this process only.
 */
class Turns {
  #last: Promise<unknown> = Promise.resolve()

  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => undefined)
    return turn
  }
}

async function serveTunnel(
  { objects, hub, onChange }: AgentRoutesOptions,
  { exchange }: RouteCall,
  { cluster, agent }: { readonly cluster: string; readonly agent: ConnectedAgent },
): Promise<void> {
  const { clock, log } = objects
  const connection = await acceptWebSocket(exchange, {
    clock,
    pingIntervalMs: PING_MS,
    silenceLimitMs: SILENCE_MS,
    choose: (offered) => (offered.includes(TUNNEL_PROTOCOL) ? TUNNEL_PROTOCOL : undefined),
  })
  // Removed while the handshake was under way.
  if (objects.get(Clusters, cluster) === undefined) return connection.destroy()
  const tunnel = new Tunnel(connection, { clock })
  log.info('Agent connected', { cluster, address: agent.address, version: agent.version })
  onChange(cluster, agent)
  try {
    await hub.serve(cluster, tunnel)
  } catch (error) {
    log.info('Lost connection to agent', { cluster, err: (error as Error).message })
  } finally {
    if (hub.get(cluster) === undefined) onChange(cluster, undefined)
  }
}

async function connect(
  { objects }: AgentRoutesOptions,
  call: RouteCall,
): Promise<{ cluster: string; agent: ConnectedAgent }> {
  const { uid, agentVersion } = parametersOf(call)
  const shown = hashOf(tokenOf(call))
  for (const { metadata, status } of objects.list(Clusters)) {
    if (status?.uid !== uid) continue
    const { name = '' } = metadata
    const stored = await storedHash(objects, name)
    if (isSame(shown, stored ?? ''))
      return { cluster: name, agent: { uid, version: agentVersion, address: call.address } }
  }
  // An unknown cluster and a wrong credential look the same.
  throw unauthorizedError('Unauthorized')
}

async function register(
  { objects }: AgentRoutesOptions,
  call: RouteCall,
): Promise<{ cluster: string; agent: ConnectedAgent }> {
  const { uid, agentVersion, credential } = parametersOf(call)
  if (credential.length < MIN_CREDENTIAL) throw badRequestError('the credential of the agent is too short')
  const token = usableToken(objects, hashOf(tokenOf(call)))
  const cluster = objects.get(Clusters, token.spec.cluster)
  if (cluster === undefined) throw unauthorizedError('Unauthorized')
  refuseSecondImport(objects, cluster, uid)
  await useOnce(objects, token)
  const name = cluster.metadata.name ?? ''
  await storeHash(objects, cluster, hashOf(credential))
  await objects.change(Clusters, name, (now) => ({ ...now, status: { ...now.status, uid } }), { subresource: 'status' })
  return { cluster: name, agent: { uid, version: agentVersion, address: call.address } }
}

const MIN_CREDENTIAL = 32

/** Throws StatusError if the token is unknown, expired or used up. */
function usableToken(objects: ManagementObjects, hash: string): RegistrationToken {
  const found = objects.list(RegistrationTokens).find(({ spec }) => isSame(spec.hash, hash))
  const isUsable =
    found !== undefined && found.spec.usesLeft > 0 && Date.parse(found.spec.expiresAt) > objects.clock.now()
  if (!isUsable) throw unauthorizedError('Unauthorized')
  return found
}

/** Two requests with one token: the second one finds no use left. */
async function useOnce(objects: ManagementObjects, { metadata }: RegistrationToken): Promise<void> {
  await objects.change(RegistrationTokens, metadata.name ?? '', (now) => {
    if (now.spec.usesLeft <= 0) throw unauthorizedError('Unauthorized')
    return { ...now, spec: { ...now.spec, usesLeft: now.spec.usesLeft - 1 } }
  })
}

function refuseSecondImport(objects: ManagementObjects, { metadata, status }: Cluster, uid: string): void {
  const other = objects.list(Clusters).find((one) => one.status?.uid === uid && one.metadata.name !== metadata.name)
  const resource = { group: GROUP, resource: 'clusters' }
  if (other !== undefined)
    throw conflictError(
      resource,
      metadata.name ?? '',
      `this cluster is imported already, as "${other.spec.displayName}"`,
    )
  if (status?.uid !== undefined && status.uid !== uid)
    throw conflictError(resource, metadata.name ?? '', 'another cluster has registered with this name')
}

function parametersOf({ exchange }: RouteCall): AgentParameters {
  const text = Buffer.from(exchange.headers['x-api-tunnel-params']?.toString() ?? '', 'base64').toString()
  let value: Partial<Record<keyof AgentParameters, unknown>>
  try {
    value = JSON.parse(text) as typeof value
  } catch {
    throw badRequestError('the header X-API-Tunnel-Params is not JSON in base64')
  }
  const { uid, agentVersion = '', credential = '' } = value
  if (typeof uid !== 'string' || !UID.test(uid)) throw badRequestError('the parameters have no uid of a cluster')
  if (typeof agentVersion !== 'string' || typeof credential !== 'string' || agentVersion.length > MAX_VERSION)
    throw badRequestError('a parameter has another type than expected')
  return { uid, agentVersion, credential }
}

const UID = /^[\w-]{8,64}$/
const MAX_VERSION = 64

function tokenOf({ exchange }: RouteCall): string {
  const token = exchange.headers['x-api-tunnel-token']
  if (typeof token !== 'string' || token === '') throw unauthorizedError('Unauthorized')
  return token
}

export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
}

const KEY = 'hash'

function secretName(cluster: string): string {
  return `agent-${cluster}`
}

async function storedHash(objects: ManagementObjects, cluster: string): Promise<string | undefined> {
  const secret = await objects.secret(secretName(cluster))
  const encoded = secret?.data?.[KEY]
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString()
}

/** The Secret goes with the Cluster. A cluster that registers again, with another token, gets the new credential. */
async function storeHash({ client }: ManagementObjects, { metadata }: Cluster, hash: string): Promise<void> {
  const { name = '', uid = '' } = metadata
  const owner = { apiVersion: `${GROUP}/v1`, kind: 'Cluster', name, uid }
  const where = { namespace: MANAGEMENT_NAMESPACE, name: secretName(name) }
  const data = { [KEY]: Buffer.from(hash).toString('base64') }
  try {
    await client.patch(Secrets, where, { type: 'merge', value: { data } })
  } catch (error) {
    if (!isNotFound(error)) throw error
    await client.create(Secrets, { metadata: { ...where, ownerReferences: [owner] }, type: 'Opaque', data })
  }
}
