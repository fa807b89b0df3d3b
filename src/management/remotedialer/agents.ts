/**
 * Serves connections of Rancher's cluster agent (remotedialer). It authenticates with the same token each time and
 * sends its service account credential, which stays in memory. Only Clusters with `agent: remotedialer` accept it.
 */
import type { Tunnel } from '#lib/tunnel/tunnel.ts'
import { forbiddenError, unauthorizedError } from '#meta/status-errors.ts'

import { type Cluster, Clusters } from '../kinds/cluster.ts'
import type { RegistrationToken } from '../kinds/registration-token.ts'
import { hashOf, isSame, parametersIn, tokenOf } from '../links/agent-request.ts'
import { type ConnectedAgent, type ForeignAgents, openTunnel, storedHash, storeHash } from '../links/agent-routes.ts'
import { findToken, useOnce } from '../links/registration-check.ts'
import type { TunnelHub } from '../links/tunnel-hub.ts'
import { recordUid } from '../links/uid-claim.ts'
import type { ManagementObjects } from '../objects.ts'
import { type ApiThroughTunnel, apiThroughTunnel } from './api-through-tunnel.ts'
import { apiCredentialOf } from './parameters.ts'

export interface RemotedialerOptions {
  readonly objects: ManagementObjects
  readonly hub: TunnelHub
  /** Called when an agent has connected, and when its last tunnel has ended. */
  readonly onChange: (cluster: string, agent: ConnectedAgent | undefined) => void
}

interface Identified {
  readonly cluster: Cluster
  /** Present at the first connection. */
  readonly registration: RegistrationToken | undefined
}

const PREPARE_MS = 30_000
const VERSION = 'remotedialer'

export function remotedialerAgents(options: RemotedialerOptions): ForeignAgents {
  const { objects } = options
  return {
    knows: (parameters) => apiCredentialOf(parameters) !== undefined,
    async serve(call) {
      const credential = apiCredentialOf(parametersIn(call))
      if (credential === undefined) throw unauthorizedError('Unauthorized')
      const shown = tokenOf(call)
      const identified = await identify(objects, shown)
      const name = identified.cluster.metadata.name ?? ''
      const tunnel = await openTunnel(objects, call, () => objects.get(Clusters, name) !== undefined)
      if (tunnel === undefined) return
      const api = apiThroughTunnel(tunnel, credential, objects)
      try {
        await serveTunnel(options, { ...identified, tunnel, api, shown, address: call.address })
      } catch (error) {
        objects.log.info('Lost connection to agent', { cluster: name, err: (error as Error).message })
      } finally {
        await tunnel.close()
        await api.close()
      }
    },
  }
}

/** Throws StatusError 401 for an unknown token, 403 for that of a cluster that does not accept this agent. */
async function identify(objects: ManagementObjects, shown: string): Promise<Identified> {
  const hash = hashOf(shown)
  for (const cluster of objects.list(Clusters)) {
    if (cluster.spec.agent !== 'remotedialer' || cluster.status?.uid === undefined) continue
    const stored = await storedHash(objects, cluster.metadata.name ?? '')
    if (isSame(hash, stored ?? '')) return { cluster, registration: undefined }
  }
  const registration = findToken(objects, shown, 'cluster')
  const cluster = registration && objects.get(Clusters, registration.spec.cluster)
  if (cluster === undefined) throw unauthorizedError('Unauthorized')
  if (cluster.spec.agent === 'remotedialer') return { cluster, registration }
  const why = 'the cluster was not created with the agent "remotedialer"; its agent keeps its credentials'
  throw forbiddenError({ group: Clusters.group, resource: Clusters.plural }, cluster.metadata.name ?? '', why)
}

interface Connection extends Identified {
  readonly tunnel: Tunnel
  readonly api: ApiThroughTunnel
  /** The token that the agent shows. */
  readonly shown: string
  readonly address: string
}

/** The tunnel carries no requests of users before the uid of its cluster is verified. */
async function serveTunnel({ objects, hub, onChange }: RemotedialerOptions, connection: Connection): Promise<void> {
  const { cluster, tunnel, api, address } = connection
  const name = cluster.metadata.name ?? ''
  const serving = tunnel.serve()
  serving.catch(() => undefined)
  const uid = await admit(objects, connection)
  objects.log.info('Agent connected', { cluster: name, address, version: VERSION })
  onChange(name, { uid, version: VERSION, address })
  try {
    await hub.serve(name, tunnel, { dial: () => api.dial(), serving })
  } finally {
    if (hub.get(name) === undefined) onChange(name, undefined)
  }
}

/** Returns the uid of the cluster. Throws if it is another cluster than before. */
async function admit(objects: ManagementObjects, connection: Connection): Promise<string> {
  const { cluster, registration, api, shown } = connection
  const limit = new AbortController()
  const expire = (): void => limit.abort(new Error(`no answer within ${PREPARE_MS / 1000} s`))
  const timer = objects.clock.after(PREPARE_MS, expire, { background: true })
  const uid = await api.prepare(limit.signal).finally(() => timer.cancel())
  if (registration !== undefined) await useOnce(objects, registration)
  await recordUid(objects, cluster, uid)
  if (registration !== undefined) await storeHash(objects, cluster, hashOf(shown))
  return uid
}
