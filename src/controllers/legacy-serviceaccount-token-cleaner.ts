/**
 * Cleaner of old tokens: a Secret with a token that was made along with its account, and that nobody has used for a long
 * time, is marked as invalid, and after as long again deleted. The API server notes on it when it was last used.
 */
import { ConfigMaps, Pods, type Secret, Secrets, ServiceAccounts } from '#apis/core/v1.ts'
import { duration } from '#lib/flags/kinds.ts'
import { isBeingDeleted, keyOf, objectKey } from '#meta/object.ts'
import { isConflict, isNotFound } from '#meta/status.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'
import { secretNames } from '#model/pod-spec/secret-names.ts'

import type { Cache } from './cache.ts'
import { type Controller, type ControllerContext, defineController, rule } from './controller.ts'
import { inRounds } from './in-rounds.ts'

const DAY_MS = 24 * 3_600_000
const TYPE = 'kubernetes.io/service-account-token'
const LAST_USED = 'kubernetes.io/legacy-token-last-used'
const INVALID_SINCE = 'kubernetes.io/legacy-token-invalid-since'
/** Since when the API server notes the use of tokens. */
const TRACKING = { namespace: 'kube-system', name: 'kube-apiserver-legacy-service-account-token-tracking' }

export const legacyTokenCleanerController: Controller = defineController({
  name: 'legacy-serviceaccount-token-cleaner-controller',
  aliases: ['legacy-service-account-token-cleaner'],
  account: 'legacy-service-account-token-cleaner',
  watches: [],
  reads: [ServiceAccounts, Secrets, Pods],
  rules: [rule('', 'configmaps', 'get'), rule('', 'secrets', 'delete patch')],

  reconcile: () => Promise.resolve(),

  prepare({ settings }) {
    const period = settings['legacy-service-account-token-clean-up-period']
    if (period > 0) return Promise.resolve(true)
    const why = `invalid CleanUpPeriod: ${duration.print(period)}`
    return Promise.reject(new Error(`failed to init the legacy service account token cleaner: ${why}`))
  },

  run: (context) => inRounds(context, DAY_MS, 'Getting lastest possible tracked_since time', () => clean(context)),
})

async function clean(context: ControllerContext): Promise<void> {
  const { cache, clock, settings, log, signal } = context
  const periodMs = settings['legacy-service-account-token-clean-up-period']
  const nowMs = clock.now()
  if (nowMs < (await trackedSinceMs(context)) + periodMs) return
  const used = new Map<string, ReadonlySet<string | undefined>>()
  for (const secret of cache.list(Secrets)) {
    const fate = fateOf(secret, { cache, used }, { nowMs, keepMs: nowMs - periodMs })
    if (fate === undefined) continue
    await (fate === 'mark' ? mark(secret, context) : remove(secret, context)).catch((error: unknown) => {
      if (!signal.aborted) log.error(error, 'Cleaning legacy service account token', { secret: objectKey(secret) })
    })
  }
}

/** Throws when nobody says so. The day after, because the day itself was not watched from its beginning. */
async function trackedSinceMs({ client, signal }: ControllerContext): Promise<number> {
  const { data = {} } = await client.get(ConfigMaps, TRACKING, { signal })
  const { since } = data
  if (since === undefined) throw new Error('configMap does not have since label')
  if (!isDay(since)) throw new Error(`error parsing trackedSince time: "${since}" is not a day`)
  return epochMsOf(`${since}T00:00:00Z`) + DAY_MS
}

interface Moment {
  readonly nowMs: number
  /** What was made or used since then stays. */
  readonly keepMs: number
}

interface Around {
  readonly cache: Cache
  /** The Secrets that pods name, by namespace, as far as they were asked for. */
  readonly used: Map<string, ReadonlySet<string | undefined>>
}

function fateOf(secret: Secret, around: Around, { keepMs }: Moment): 'mark' | 'remove' | undefined {
  const { creationTimestamp = '', labels = {} } = secret.metadata
  if (secret.type !== TYPE || isBeingDeleted(secret) || epochMsOf(creationTimestamp) >= keepMs) return undefined
  const keepDay = dayOf(keepMs)
  const lastUsed = labels[LAST_USED]
  // A day that cannot be read may be any.
  if (lastUsed !== undefined && (!isDay(lastUsed) || lastUsed >= keepDay)) return undefined
  if (!isAutomatic(secret, around.cache) || isMounted(secret, around)) return undefined
  const since = labels[INVALID_SINCE]
  if (since === undefined || !isDay(since)) return 'mark'
  return since >= keepDay ? undefined : 'remove'
}

/** Made along with its account, which then names it. */
function isAutomatic({ metadata }: Secret, cache: Cache): boolean {
  const { namespace = '', name, annotations = {} } = metadata
  const account = cache.get(ServiceAccounts, keyOf(namespace, annotations['kubernetes.io/service-account.name'] ?? ''))
  const uid = annotations['kubernetes.io/service-account.uid'] ?? ''
  if (account === undefined || (uid !== '' && uid !== account.metadata.uid)) return false
  return (account.secrets ?? []).some((secret) => secret.name === name)
}

function isMounted({ metadata: { namespace = '', name } }: Secret, { cache, used }: Around): boolean {
  let names = used.get(namespace)
  if (names === undefined) {
    names = new Set(cache.inNamespace(Pods, namespace).flatMap(({ spec }) => secretNames(spec)))
    used.set(namespace, names)
  }
  return names.has(name)
}

async function mark({ metadata }: Secret, { client, clock, signal }: ControllerContext): Promise<void> {
  const { namespace, name = '', uid } = metadata
  const value = { metadata: { uid, labels: { [INVALID_SINCE]: dayOf(clock.now()) } } }
  await client.patch(Secrets, { namespace, name }, { type: 'merge', value }, { signal })
}

async function remove({ metadata }: Secret, { client, signal }: ControllerContext): Promise<void> {
  const { namespace, name = '', resourceVersion = '' } = metadata
  try {
    await client.delete(Secrets, { namespace, name }, { preconditions: { resourceVersion }, signal })
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error
  }
}

function dayOf(ms: number): string {
  return timeOf(ms).slice(0, 10)
}

function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(epochMsOf(`${text}T00:00:00Z`))
}
