/**
 * Legacy token cleaner: marks auto-generated token Secrets as invalid after a period without use, and deletes them
 * after another one. The API server records the last use on the Secret.
 */
import { ConfigMaps, Pods, type Secret, Secrets, ServiceAccounts } from '#apis/core/v1.ts'
import { duration } from '#lib/flags/kinds.ts'
import { isBeingDeleted, keyOf, objectKey } from '#meta/object.ts'
import { isConflict, isNotFound } from '#meta/status.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'
import { secretNames } from '#model/pod-spec/warnings/secret-names.ts'
import type { Cache } from '#reconcile/cache.ts'
import { rule } from '#reconcile/controller.ts'
import { runPeriodically } from '#reconcile/periodic.ts'

import { type Controller, type ControllerContext, defineController } from '../controller.ts'

const DAY_MS = 24 * 3_600_000
const TYPE = 'kubernetes.io/service-account-token'
const LAST_USED = 'kubernetes.io/legacy-token-last-used'
const INVALID_SINCE = 'kubernetes.io/legacy-token-invalid-since'
/** The ConfigMap with the day since which the API server records token use. */
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

  run: (context) =>
    runPeriodically(context, DAY_MS, 'Getting lastest possible tracked_since time', () => clean(context)),
})

async function clean(context: ControllerContext): Promise<void> {
  const { cache, clock, settings, log, signal } = context
  const periodMs = settings['legacy-service-account-token-clean-up-period']
  const nowMs = clock.now()
  if (nowMs < (await trackedSinceMs(context)) + periodMs) return
  const used = new Map<string, ReadonlySet<string | undefined>>()
  for (const secret of cache.list(Secrets)) {
    const fate = actionFor(secret, { cache, used }, { nowMs, keepMs: nowMs - periodMs })
    if (fate === undefined) continue
    await (fate === 'mark' ? mark(secret, context) : remove(secret, context)).catch((error: unknown) => {
      if (!signal.aborted) log.error(error, 'Cleaning legacy service account token', { secret: objectKey(secret) })
    })
  }
}

/** Throws without a record. Returns the following day, because the first day was recorded only in part. */
async function trackedSinceMs({ client, signal }: ControllerContext): Promise<number> {
  const { data = {} } = await client.get(ConfigMaps, TRACKING, { signal })
  const { since } = data
  if (since === undefined) throw new Error('configMap does not have since label')
  if (!isDay(since)) throw new Error(`error parsing trackedSince time: "${since}" is not a day`)
  return epochMsOf(`${since}T00:00:00Z`) + DAY_MS
}

interface CleaningTimes {
  readonly nowMs: number
  /** Secrets created or used since then stay. */
  readonly keepMs: number
}

interface CleanerContext {
  readonly cache: Cache
  /** The Secrets that pods mount, by namespace, read on demand. */
  readonly used: Map<string, ReadonlySet<string | undefined>>
}

function actionFor(
  secret: Secret,
  cleanerContext: CleanerContext,
  { keepMs }: CleaningTimes,
): 'mark' | 'remove' | undefined {
  const { creationTimestamp = '', labels = {} } = secret.metadata
  if (secret.type !== TYPE || isBeingDeleted(secret) || epochMsOf(creationTimestamp) >= keepMs) return undefined
  const keepDay = dayOf(keepMs)
  const lastUsed = labels[LAST_USED]
  // An invalid date counts as recent use.
  if (lastUsed !== undefined && (!isDay(lastUsed) || lastUsed >= keepDay)) return undefined
  if (!isAutomatic(secret, cleanerContext.cache) || isMounted(secret, cleanerContext)) return undefined
  const since = labels[INVALID_SINCE]
  if (since === undefined || !isDay(since)) return 'mark'
  return since >= keepDay ? undefined : 'remove'
}

/** The Secret was generated with its account, which lists it. */
function isAutomatic({ metadata }: Secret, cache: Cache): boolean {
  const { namespace = '', name, annotations = {} } = metadata
  const account = cache.get(ServiceAccounts, keyOf(namespace, annotations['kubernetes.io/service-account.name'] ?? ''))
  const uid = annotations['kubernetes.io/service-account.uid'] ?? ''
  if (account === undefined || (uid !== '' && uid !== account.metadata.uid)) return false
  return (account.secrets ?? []).some((secret) => secret.name === name)
}

function isMounted({ metadata: { namespace = '', name } }: Secret, { cache, used }: CleanerContext): boolean {
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
