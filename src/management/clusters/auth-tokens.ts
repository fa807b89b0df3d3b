/**
 * The controller that copies API tokens to clusters with an authorized endpoint, where `kube-api-auth` authenticates
 * them without the management server. A change is copied as soon as the agent is connected.
 */
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'
import { semanticEqual } from '#meta/object.ts'
import type { Cache } from '#reconcile/cache.ts'
import { type Controller, itself, related, rule, type Watch } from '#reconcile/controller.ts'

import { Memberships } from '../access/memberships.ts'
import { Members, Projects, Roles } from '../kinds/access.ts'
import { type Cluster, Clusters, TOKENS_APPLIED } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import { type Token, Tokens } from '../kinds/token.ts'
import { type User, Users } from '../kinds/user.ts'
import { applyAuthTokens, removeAuthTokens } from './apply-auth-tokens.ts'
import { authTokenObjects, type AuthTokenObjects, firstExpiryMs } from './auth-token-objects.ts'
import { clusterClient } from './cluster-client.ts'
import { type Context, type Finding, type ManagementSettings, timeout, writeStatus } from './cluster-status.ts'

const APPLY_MS = 10 * 60_000
const APPLY_TIMEOUT_MS = 60_000
const ABSENT_RETRY_MS = 60_000
/** Several Members often change at once. */
const GATHER_MS = 50

export const clusterAuthTokens: Controller<ManagementSettings> = {
  name: 'cluster-auth-tokens-controller',
  watches: [
    itself(Clusters),
    related(Tokens, ({ spec }) => (spec.cluster === undefined ? [] : [spec.cluster]), tokenChanged),
    ofAll(Users, userChanged),
    ofAll(Members),
    ofAll(Roles),
    related(Projects, ({ spec }) => [spec.cluster]),
  ],
  rules: [rule(GROUP, 'clusters clusters/status tokens users members roles projects', 'get list watch update')],
  reconcile: (key, context) => context.settings.turns.take(key, () => applyTokens(key, context)),
}

async function applyTokens(key: string, context: Context): Promise<{ readonly requeueAfterMs: number } | undefined> {
  const cluster = context.cache.get(Clusters, key)
  if (cluster === undefined) return undefined
  const isEnabled = cluster.spec.authorizedEndpoint?.enabled === true
  if (!isEnabled && !mayHaveTokens(cluster)) return undefined
  const link = context.settings.links.get(key)
  if (link === undefined) {
    await writeStatus(context, key, { conditions: [AWAY] })
    return { requeueAfterMs: ABSENT_RETRY_MS }
  }
  const client = clusterClient(link, context.clock)
  const signal = AbortSignal.any([context.signal, timeout(context.clock, APPLY_TIMEOUT_MS)])
  if (!isEnabled) {
    await removeAuthTokens(client, signal)
    await writeStatus(context, key, { conditions: [REMOVED] })
    return undefined
  }
  // Before the first object, so that they are deleted even if the endpoint is disabled before all of them exist.
  if (!mayHaveTokens(cluster)) await writeStatus(context, key, { conditions: [STARTED] })
  const wanted = wantedIn(key, context)
  await applyAuthTokens(client, wanted, { random: context.random, signal })
  await writeStatus(context, key, { conditions: [APPLIED] })
  return { requeueAfterMs: Math.max(0, Math.min(APPLY_MS, firstExpiryMs(wanted) - context.clock.now())) }
}

const STARTED: Finding = {
  type: TOKENS_APPLIED,
  status: 'Unknown',
  reason: 'Started',
  message: 'The cluster does not know all tokens yet.',
}
const AWAY: Finding = {
  type: TOKENS_APPLIED,
  status: 'Unknown',
  reason: 'AgentDisconnected',
  message: 'The agent of the cluster is not connected: changes of tokens and members arrive when it is back.',
}
const APPLIED: Finding = {
  type: TOKENS_APPLIED,
  status: 'True',
  reason: 'Applied',
  message: 'The cluster knows the tokens of its authorized endpoint.',
}
const REMOVED: Finding = {
  type: TOKENS_APPLIED,
  status: 'False',
  reason: 'Disabled',
  message: 'The cluster has no authorized endpoint.',
}

function mayHaveTokens({ status }: Cluster): boolean {
  const found = status?.conditions?.find(({ type }) => type === TOKENS_APPLIED)
  return found !== undefined && found.status !== 'False'
}

/** Enqueues all clusters with an authorized endpoint. */
function ofAll<T extends KubeObject>(kind: Kind<T>, concerns?: (object: T, old: T) => boolean): Watch {
  const keysOf = (_object: T, cache: Cache): readonly string[] =>
    [...cache.list(Clusters)]
      .filter(({ spec }) => spec.authorizedEndpoint?.enabled === true)
      .map(({ metadata }) => metadata.name ?? '')
  return { ...related(kind, keysOf, concerns), delayMs: GATHER_MS }
}

/** Not the time of the last use. */
function tokenChanged({ spec, metadata }: Token, old: Token): boolean {
  return !semanticEqual(spec, old.spec) || metadata.deletionTimestamp !== old.metadata.deletionTimestamp
}

/** Not the time of the last log-in. */
function userChanged({ spec, metadata, status }: User, old: User): boolean {
  const isSame = semanticEqual(spec, old.spec) && semanticEqual(status?.groups, old.status?.groups)
  return !isSame || metadata.deletionTimestamp !== old.metadata.deletionTimestamp
}

/** Reads this controller's cache only: another one may not have the change yet that enqueued the key. */
function wantedIn(cluster: string, { cache, clock }: Context): AuthTokenObjects {
  const memberships = new Memberships({
    get: (kind, name) => cache.get(kind, name),
    list: (kind) => [...cache.list(kind)],
    listen(kind, changed) {
      for (const object of cache.list(kind)) changed(object, false)
      return () => undefined
    },
  })
  const sources = { tokens: [...cache.list(Tokens)], user: (name: string) => cache.get(Users, name), memberships }
  return authTokenObjects(sources, cluster, clock.now())
}
