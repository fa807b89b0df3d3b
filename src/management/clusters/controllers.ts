/** The controllers of the management server, on the framework that all controllers use. */
import { type Controller, itself, related, rule } from '#reconcile/controller.ts'

import { USUAL_PROJECT_ROLES } from '../access/built-in-roles.ts'
import { Members, Projects, Roles } from '../kinds/access.ts'
import {
  type Cluster,
  Clusters,
  type ClusterStatus,
  CONNECTED,
  LOCAL_CLUSTER,
  READY,
  ROLES_APPLIED,
} from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import { RegistrationTokens } from '../kinds/registration-token.ts'
import type { ClusterLink } from '../links/link.ts'
import { accessObjects, type AccessObjects, managementAccessObjects } from './access-objects.ts'
import { applyAccess } from './apply-access.ts'
import { clusterAuthTokens } from './auth-tokens.ts'
import { clusterClient } from './cluster-client.ts'
import { type Context, type Finding, type ManagementSettings, timeout, writeStatus } from './cluster-status.ts'
import { defaultProjects } from './default-projects.ts'
import { probeCluster } from './health.ts'

const PROBE_MS = 15_000
const PROBE_TIMEOUT_MS = 10_000
const APPLY_MS = 10 * 60_000
const APPLY_TIMEOUT_MS = 60_000
const ABSENT_RETRY_MS = 60_000
/** Clusters write the messages of errors. */
const MAX_REASON = 500

/** Writes conditions, version and capacity into the status of each Cluster every 15 seconds. */
const clusterHealth: Controller<ManagementSettings> = {
  name: 'cluster-health-controller',
  watches: [itself(Clusters)],
  rules: [rule(GROUP, 'clusters clusters/status', 'get list watch update')],
  async reconcile(key, context) {
    const cluster = context.cache.get(Clusters, key)
    if (cluster === undefined) return
    await writeStatus(context, key, await healthOf(cluster, context))
    return { requeueAfterMs: PROBE_MS }
  },
}

async function healthOf(
  cluster: Cluster,
  { settings: { links }, clock, signal }: Context,
): Promise<{ readonly found: Partial<ClusterStatus>; readonly conditions: readonly Finding[] }> {
  const link = links.get(cluster.metadata.name ?? '')
  const { source } = cluster.spec
  if (link === undefined) {
    const finding = { status: 'False', ...UNREACHABLE[source] } as const
    return {
      found: {},
      conditions: [
        { type: CONNECTED, ...finding },
        { type: READY, ...finding, status: 'Unknown' },
      ],
    }
  }
  const connected: Finding = { type: CONNECTED, status: 'True', ...wayTo(link, source) }
  try {
    const limit = AbortSignal.any([signal, timeout(clock, PROBE_TIMEOUT_MS)])
    const { uid, ...found } = await probeCluster(clusterClient(link, clock), limit)
    const message = 'The API server of the cluster answers.'
    // The uid of other clusters is that of their registration: it finds the cluster of an agent, so a cluster must not change it.
    const ready = { type: READY, status: 'True', reason: 'Answers', message } as const
    const isOurs = source === 'local' || source === 'up'
    return { found: isOurs ? { ...found, uid } : found, conditions: [connected, ready] }
  } catch (error) {
    const message = `The API server of the cluster does not answer: ${(error as Error).message.slice(0, MAX_REASON)}`
    return { found: {}, conditions: [connected, { type: READY, status: 'False', reason: 'DoesNotAnswer', message }] }
  }
}

type Cause = Pick<Finding, 'reason' | 'message'>

const AGENT_DISCONNECTED: Cause = {
  reason: 'AgentDisconnected',
  message: 'The agent of the cluster is not connected.',
}

/** Why the condition Connected is False, by the source of the cluster. */
const UNREACHABLE: Readonly<Record<Cluster['spec']['source'], Cause>> = {
  local: AGENT_DISCONNECTED,
  imported: AGENT_DISCONNECTED,
  built: AGENT_DISCONNECTED,
  up: {
    reason: 'NotRunning',
    message: 'The cluster does not run on this machine; the condition Running has the reason.',
  },
}

const AGENT_CONNECTED: Cause = { reason: 'AgentConnected', message: 'The agent of the cluster is connected.' }

/** Why it is True. */
const REACHABLE: Readonly<Record<Cluster['spec']['source'], Cause>> = {
  local: { reason: 'Local', message: 'The cluster runs in the management server.' },
  imported: AGENT_CONNECTED,
  built: AGENT_CONNECTED,
  up: { reason: 'Running', message: 'The cluster runs on the machine of the server.' },
}

function wayTo({ machine }: ClusterLink, source: Cluster['spec']['source']): Cause {
  if (machine === undefined) return REACHABLE[source]
  const message = `The agent of the cluster is not connected; requests use the control plane "${machine}".`
  return { reason: 'MachineConnected', message }
}

/** Brings the RBAC objects of the roles and projects into each connected cluster. */
const clusterAccess: Controller<ManagementSettings> = {
  name: 'cluster-access-controller',
  watches: [
    itself(Clusters),
    related(Roles, (_role, cache) => [...cache.list(Clusters)].map(({ metadata }) => metadata.name ?? '')),
    related(Projects, ({ spec }) => [spec.cluster]),
    related(Members, ({ spec: { role, project } }, cache) => {
      const isBound = project === undefined || USUAL_PROJECT_ROLES.has(role)
      const cluster = isBound ? undefined : cache.get(Projects, project)?.spec.cluster
      return cluster === undefined ? [] : [cluster]
    }),
  ],
  rules: [rule(GROUP, 'clusters clusters/status roles projects members', 'get list watch update')],
  async reconcile(key, context) {
    const { cache, clock, signal, settings } = context
    if (cache.get(Clusters, key) === undefined) return
    const isReached = await settings.turns.take(key, async () => {
      // A removed cluster has no link any more.
      const link = cache.get(Clusters, key) === undefined ? undefined : settings.links.get(key)
      if (link === undefined) return false
      const limit = AbortSignal.any([signal, timeout(clock, APPLY_TIMEOUT_MS)])
      await applyAccess(clusterClient(link, clock), wantedIn(key, context), limit)
      return true
    })
    if (!isReached) return { requeueAfterMs: ABSENT_RETRY_MS }
    const message = 'The roles of the management server exist in the cluster.'
    const applied = { type: ROLES_APPLIED, status: 'True', reason: 'Applied', message } as const
    await writeStatus(context, key, { found: {}, conditions: [applied] })
    return { requeueAfterMs: APPLY_MS }
  },
}

function wantedIn(cluster: string, { cache }: Context): AccessObjects {
  const roles = [...cache.list(Roles)]
  const projects = [...cache.list(Projects)].filter(({ spec }) => spec.cluster === cluster)
  const members = [...cache.list(Members)].filter(({ spec }) => spec.project !== undefined)
  const inside = accessObjects({ roles, projects, members })
  if (cluster !== LOCAL_CLUSTER) return inside
  const management = managementAccessObjects(roles)
  return {
    clusterRoles: [...inside.clusterRoles, ...management.clusterRoles],
    clusterRoleBindings: [...inside.clusterRoleBindings, ...management.clusterRoleBindings],
    roleBindings: inside.roleBindings,
  }
}

/** Deletes registration tokens that have expired. */
const registrationTokenCleaner: Controller<ManagementSettings> = {
  name: 'registration-token-cleaner',
  watches: [itself(RegistrationTokens)],
  rules: [rule(GROUP, 'registrationtokens', 'get list watch delete')],
  async reconcile(key, { cache, client, clock, signal }) {
    const token = cache.get(RegistrationTokens, key)
    if (token === undefined) return undefined
    const leftMs = Date.parse(token.spec.expiresAt) - clock.now()
    if (leftMs > 0) return { requeueAfterMs: leftMs }
    await client.delete(RegistrationTokens, { name: key }, { signal })
    return undefined
  },
}

export const MANAGEMENT_CONTROLLERS: readonly Controller<ManagementSettings>[] = [
  clusterHealth,
  clusterAccess,
  clusterAuthTokens,
  defaultProjects,
  registrationTokenCleaner,
]
