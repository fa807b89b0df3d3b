/** Validates a KubeSchedulerConfiguration with upstream's texts, in upstream's order. */
import { durationMs } from '#lib/go/duration.ts'
import { createRepetition } from '#lib/repetition.ts'
import { semanticEqual } from '#meta/object.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath, verbatim } from '#meta/validation/field-path.ts'
import { qualifiedName } from '#meta/validation/names.ts'
import { isExtendedResource } from '#model/pod-spec/containers/resource-names.ts'

import { type PluginSet, type PluginSetting, type Point, POINTS } from '../framework/extension-points.ts'
import type {
  ExtenderConfiguration,
  LeaderElectionConfiguration,
  ProfileConfiguration,
  SchedulerConfiguration,
} from './configuration.ts'
import { ARGS, GROUP_VERSION, type IsEnabled } from './plugin-args.ts'

export function configurationErrors(config: SchedulerConfiguration, isEnabled: IsEnabled): FieldError[] {
  const { clientConnection, parallelism, profiles, podInitialBackoffSeconds, podMaxBackoffSeconds } = config
  const errors: FieldError[] = []
  if (clientConnection.burst < 0) {
    errors.push(fieldPath('clientConnection.burst').invalid(clientConnection.burst, 'must be non-negative'))
  }
  errors.push(...leaderErrors(config.leaderElection))
  if (parallelism <= 0) {
    errors.push(fieldPath('parallelism').invalid(parallelism, 'should be an integer value greater than zero'))
  }
  for (const [at, profile] of profiles.entries()) errors.push(...profileErrors(profiles, at, profile, isEnabled))
  errors.push(...queueSortErrors(profiles))
  errors.push(...percentageErrors(fieldPath('percentageOfNodesToScore'), config.percentageOfNodesToScore))
  if (podInitialBackoffSeconds <= 0) {
    errors.push(fieldPath('podInitialBackoffSeconds').invalid(podInitialBackoffSeconds, 'must be greater than 0'))
  }
  if (podMaxBackoffSeconds < podInitialBackoffSeconds) {
    const why = 'must be greater than or equal to PodInitialBackoffSeconds'
    errors.push(fieldPath('podMaxBackoffSeconds').invalid(podMaxBackoffSeconds, why))
  }
  return [...errors, ...extenderErrors(config.extenders)]
}

function leaderErrors(leader: LeaderElectionConfiguration): FieldError[] {
  const { leaderElect, leaseDuration, renewDeadline, resourceLock } = leader
  if (!leaderElect) return []
  return collectErrors(
    (['leaseDuration', 'renewDeadline', 'retryPeriod'] as const).flatMap((name) =>
      durationMs(leader[name]) > 0
        ? []
        : [fieldPath(`leaderElection.${name}`).invalid(leader[name], 'must be greater than zero')],
    ),
    durationMs(leaseDuration) <= durationMs(renewDeadline) &&
      fieldPath('leaderElection.leaseDuration').invalid(renewDeadline, 'must be greater than `RenewDeadline`'),
    resourceLock !== 'leases' &&
      fieldPath('leaderElection.resourceLock').invalid(resourceLock, 'resourceLock value must be "leases"'),
  )
}

function profileErrors(
  profiles: readonly ProfileConfiguration[],
  at: number,
  profile: ProfileConfiguration,
  isEnabled: IsEnabled,
): FieldError[] {
  const path = fieldPath('profiles').index(at)
  const { schedulerName = '', percentageOfNodesToScore } = profile
  const isTaken = profiles.slice(0, at).some((one) => (one.schedulerName ?? '') === schedulerName)
  return collectErrors(
    schedulerName === '' && path.child('schedulerName').required(),
    percentageErrors(path.child('percentageOfNodesToScore'), percentageOfNodesToScore),
    POINTS.flatMap((point) => removedErrors(path, point, profile.plugins?.[point]?.enabled)),
    argsErrors(path, profile, isEnabled),
    isTaken && path.child('schedulerName').duplicate(verbatim('{}')),
  )
}

function percentageErrors(path: FieldPath, percentage = 0): FieldError[] {
  return percentage < 0 || percentage > 100 ? [path.invalid(percentage, 'not in valid range [0-100]')] : []
}

const REMOVED = ['AzureDiskLimits', 'CinderLimits', 'EBSLimits', 'GCEPDLimits']
const WAS_REMOVED = `was invalid in version "v1" (KubeSchedulerConfiguration is version "${GROUP_VERSION}")`

function removedErrors(path: FieldPath, point: Point, enabled: readonly PluginSetting[] = []): FieldError[] {
  return path
    .child(`plugins.${point}.enabled`)
    .each(enabled, (path, { name }) => REMOVED.includes(name) && path.invalid(name, WAS_REMOVED))
}

function argsErrors(path: FieldPath, { pluginConfig = [] }: ProfileConfiguration, isEnabled: IsEnabled): FieldError[] {
  return path.child('pluginConfig').each(pluginConfig, (where, { name, args = {} }, at) => {
    const isSeen = pluginConfig.slice(0, at).some((one) => one.name === name)
    const known = ARGS.get(name)
    const isValidatedNow = known !== undefined && known.isValidatedLate !== true
    return collectErrors(
      isSeen && where.duplicate(name),
      REMOVED.includes(name) && where.invalid(name, WAS_REMOVED),
      isValidatedNow && known.errors(where.child('args'), args as never, isEnabled),
    )
  })
}

/** All profiles must use the same queue sort. */
function queueSortErrors(profiles: readonly ProfileConfiguration[]): FieldError[] {
  const first = profiles[0]?.plugins?.queueSort ?? {}
  const count = first.enabled?.length ?? 0
  const errors =
    count > 1
      ? [fieldPath('profiles[0].plugins.queueSort.Enabled').invalid(count, 'only one queue sort plugin can be enabled')]
      : []
  for (const [at, profile] of profiles.entries()) {
    const own = profile.plugins?.queueSort ?? {}
    if (semanticEqual(first, own)) continue
    const where = fieldPath('profiles').index(at).child('plugins.queueSort')
    errors.push(where.invalid(verbatim(setText(own)), 'must be the same for all profiles'))
  }
  return errors
}

/** The Go syntax of the value in upstream's message. */
function setText({ enabled = [], disabled = [] }: PluginSet): string {
  const list = (plugins: readonly PluginSetting[]): object[] | null =>
    plugins.length === 0 ? null : plugins.map(({ name, weight = 0 }) => ({ Name: name, Weight: weight }))
  return JSON.stringify({ Enabled: list(enabled), Disabled: list(disabled) })
}

function extenderErrors(extenders: readonly ExtenderConfiguration[]): FieldError[] {
  const isRepeated = createRepetition()
  const errors = fieldPath('extenders').each(
    extenders,
    (path, { prioritizeVerb = '', weight = 0, managedResources = [] }) => {
      const unweighted = prioritizeVerb !== '' && weight <= 0
      return collectErrors(
        unweighted && path.child('weight').invalid(weight, 'must have a positive weight applied to it'),
        path.child('managedResources').each(managedResources, (path, { name = '' }) => {
          const where = path.child('name')
          const isSeen = isRepeated(name)
          return collectErrors(
            resourceErrors(where, name),
            isSeen && where.invalid(name, 'duplicate extender managed resource name'),
          )
        }),
      )
    },
  )
  const binders = extenders.filter(({ bindVerb = '' }) => bindVerb !== '').length
  if (binders < 2) return errors
  const found = `found ${binders} extenders implementing bind`
  return [...errors, fieldPath('extenders').invalid(found, 'only one extender can implement bind')]
}

function resourceErrors(path: FieldPath, name: string): FieldError[] {
  const complaints = qualifiedName(name)
  if (complaints.length > 0) return complaints.map((complaint) => path.invalid(name, complaint))
  return isExtendedResource(name) ? [] : [path.invalid(name, 'is an invalid extended resource name')]
}
