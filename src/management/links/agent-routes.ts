/**
 * The HTTP routes of agents. `/v3/connect/register` accepts a registration token and stores the hash of the agent's
 * credential; `/v3/connect` accepts that credential. Agents of clusters and of machines use the same routes.
 */
import { Secrets } from '#apis/core/v1.ts'
import { acceptWebSocket } from '#lib/http/websocket.ts'
import { Tunnel, TUNNEL_PROTOCOL } from '#lib/tunnel/tunnel.ts'
import { badRequestError, unauthorizedError } from '#meta/status-errors.ts'
import { isNotFound } from '#meta/status.ts'

import { type Cluster, Clusters } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import type { Machine } from '../kinds/machine.ts'
import { MANAGEMENT_NAMESPACE, type ManagementObjects } from '../objects.ts'
import type { Route, RouteCall } from '../port/route.ts'
import { Turns } from '../turns.ts'
import { checkCredential, hashOf, isSame, parametersIn, tokenOf } from './agent-request.ts'
import { connectMachine, type IdentifiedMachine, machineOf, registerMachine } from './machine-agents.ts'
import { isOfMachine } from './machine-parameters.ts'
import type { MachineTunnels } from './machine-tunnels.ts'
import { planRoute } from './plan-route.ts'
import { findToken, useOnce } from './registration-check.ts'
import type { TunnelHub } from './tunnel-hub.ts'
import { importedAlready, otherCluster, recordUid } from './uid-claim.ts'

export interface AgentRoutesOptions {
  readonly objects: ManagementObjects
  readonly hub: TunnelHub
  /** Called when an agent has connected, and when its last tunnel has ended. */
  readonly onChange: (cluster: string, agent: ConnectedAgent | undefined) => void
  readonly machines: MachineAgents
  readonly foreign: ForeignAgents
}

/** Agents that speak the first version of the tunnel protocol only, such as Rancher's. */
export interface ForeignAgents {
  /** Whether the parameters are those of such an agent. Throws StatusError if they are not valid. */
  knows(parameters: Readonly<Record<string, unknown>>): boolean
  /** Serves its connection until it ends. Throws StatusError if the agent is not accepted. */
  serve(call: RouteCall): Promise<void>
}

export interface MachineAgents {
  readonly tunnels: Pick<MachineTunnels, 'serve' | 'isConnected'>
  /** Called when the agent of a machine has connected, and when its last tunnel has ended. */
  readonly onChange: (machine: Machine, agent: ConnectedMachine | undefined) => void
}

export interface ConnectedAgent {
  readonly uid: string
  readonly version: string
  readonly address: string
}

export type ConnectedMachine = IdentifiedMachine['status'] & { readonly address: string }

type Identified = { readonly cluster: string; readonly agent: ConnectedAgent } | IdentifiedMachine

interface AgentParameters {
  readonly uid: string
  readonly agentVersion: string
  readonly credential: string
}

const PING_MS = 10_000
const SILENCE_MS = 25_000

export function agentRoutes(options: AgentRoutesOptions): readonly Route[] {
  const { objects, foreign } = options
  // Between replicas, the uses of a token and the claim of a uid are safe by themselves; turns give clear answers.
  const registrations = new Turns()
  const route = (path: string, identify: (call: RouteCall) => Promise<Identified>): Route => ({
    method: 'GET',
    path,
    access: 'agent',
    async serve(call) {
      if (call.exchange.upgradeProtocol !== 'websocket')
        throw badRequestError('the request is not a WebSocket handshake')
      if (foreign.knows(parametersIn(call))) {
        await foreign.serve(call)
        return { served: 101 }
      }
      const identified = await identify(call)
      if ('machine' in identified) await serveMachine(options, call, identified)
      else await serveCluster(options, call, identified)
      return { served: 101 }
    },
  })
  return [
    route('/v3/connect', async (call) =>
      isOfMachine(parametersIn(call)) ? connectMachine(objects, call) : connect(options, call),
    ),
    route('/v3/connect/register', (call) =>
      registrations.take<Identified>(() =>
        isOfMachine(parametersIn(call)) ? registerMachine(objects, call) : register(options, call),
      ),
    ),
    planRoute(objects),
  ]
}

async function serveCluster(
  { objects, hub, onChange }: AgentRoutesOptions,
  call: RouteCall,
  { cluster, agent }: Exclude<Identified, IdentifiedMachine>,
): Promise<void> {
  const isThere = (): boolean => objects.get(Clusters, cluster) !== undefined
  const tunnel = await openTunnel(objects, call, isThere)
  if (tunnel === undefined) return
  const { log } = objects
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

async function serveMachine(
  { objects, machines: { tunnels, onChange } }: AgentRoutesOptions,
  call: RouteCall,
  { machine, status }: IdentifiedMachine,
): Promise<void> {
  const isThere = (): boolean => machineOf(objects, machine.spec.credentialHash) !== undefined
  const tunnel = await openTunnel(objects, call, isThere)
  if (tunnel === undefined) return
  const { metadata, spec } = machine
  const { name = '' } = metadata
  const { log } = objects
  const known = { machine: name, cluster: spec.cluster, node: spec.nodeName }
  log.info('Machine connected', { ...known, address: call.address, version: status.agentVersion })
  onChange(machine, { ...status, address: call.address })
  try {
    await tunnels.serve(name, tunnel)
  } catch (error) {
    log.info('Lost connection to machine', { ...known, err: (error as Error).message })
  } finally {
    if (!tunnels.isConnected(name)) onChange(machine, undefined)
  }
}

/** Undefined: the cluster or machine was removed while the handshake was under way. */
export async function openTunnel(
  { clock }: Pick<ManagementObjects, 'clock'>,
  { exchange }: RouteCall,
  isThere: () => boolean,
): Promise<Tunnel | undefined> {
  const connection = await acceptWebSocket(exchange, {
    clock,
    pingIntervalMs: PING_MS,
    silenceLimitMs: SILENCE_MS,
    choose: (offered) => (offered.includes(TUNNEL_PROTOCOL) ? TUNNEL_PROTOCOL : undefined),
  })
  if (isThere()) return new Tunnel(connection, { clock })
  connection.destroy()
  return undefined
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
  checkCredential(credential)
  const token = findToken(objects, tokenOf(call), 'cluster')
  if (token === undefined) throw unauthorizedError('Unauthorized')
  const cluster = objects.get(Clusters, token.spec.cluster)
  if (cluster === undefined) throw unauthorizedError('Unauthorized')
  refuseSecondImport(objects, cluster, uid)
  await useOnce(objects, token)
  const name = cluster.metadata.name ?? ''
  await recordUid(objects, cluster, uid)
  await storeHash(objects, cluster, hashOf(credential))
  return { cluster: name, agent: { uid, version: agentVersion, address: call.address } }
}

function refuseSecondImport(objects: ManagementObjects, { metadata, status }: Cluster, uid: string): void {
  const name = metadata.name ?? ''
  const other = objects.list(Clusters).find((one) => one.status?.uid === uid && one.metadata.name !== name)
  if (other !== undefined) throw importedAlready(name, other.spec.displayName)
  if (status?.uid !== undefined && status.uid !== uid) throw otherCluster(name)
}

function parametersOf(call: RouteCall): AgentParameters {
  const { uid, agentVersion = '', credential = '' } = parametersIn(call)
  if (typeof uid !== 'string' || !UID.test(uid)) throw badRequestError('the parameters have no uid of a cluster')
  if (typeof agentVersion !== 'string' || typeof credential !== 'string' || agentVersion.length > MAX_VERSION)
    throw badRequestError('a parameter has another type than expected')
  return { uid, agentVersion, credential }
}

const UID = /^[\w-]{8,64}$/
const MAX_VERSION = 64

const KEY = 'hash'

function secretName(cluster: string): string {
  return `agent-${cluster}`
}

export async function storedHash(objects: ManagementObjects, cluster: string): Promise<string | undefined> {
  const secret = await objects.secret(secretName(cluster))
  const encoded = secret?.data?.[KEY]
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString()
}

/** The Secret goes with the Cluster. A cluster that registers again, with another token, gets the new credential. */
export async function storeHash(
  { client }: Pick<ManagementObjects, 'client'>,
  { metadata }: Cluster,
  hash: string,
): Promise<void> {
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
