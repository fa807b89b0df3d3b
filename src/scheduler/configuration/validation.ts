/** What is wrong with a configuration, in upstream's words and order. */
import { durationMs } from '#meta/duration.ts'
import { semanticEqual } from '#meta/object.ts'
import { duplicate, type FieldError, index, invalid, required, verbatim } from '#meta/validation/field-error.ts'
import { qualifiedName } from '#meta/validation/names.ts'
import { isExtendedResource } from '#model/pod-spec/resource-names.ts'

import { type PluginSet, type PluginSetting, type Point, POINTS } from '../extension-points.ts'
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
    errors.push(invalid('clientConnection.burst', clientConnection.burst, 'must be non-negative'))
  }
  errors.push(...leaderErrors(config.leaderElection))
  if (parallelism <= 0) {
    errors.push(invalid('parallelism', parallelism, 'should be an integer value greater than zero'))
  }
  for (const [at, profile] of profiles.entries()) errors.push(...profileErrors(profiles, at, profile, isEnabled))
  errors.push(...queueSortErrors(profiles))
  errors.push(...percentageErrors('percentageOfNodesToScore', config.percentageOfNodesToScore))
  if (podInitialBackoffSeconds <= 0) {
    errors.push(invalid('podInitialBackoffSeconds', podInitialBackoffSeconds, 'must be greater than 0'))
  }
  if (podMaxBackoffSeconds < podInitialBackoffSeconds) {
    const why = 'must be greater than or equal to PodInitialBackoffSeconds'
    errors.push(invalid('podMaxBackoffSeconds', podMaxBackoffSeconds, why))
  }
  return [...errors, ...extenderErrors(config.extenders)]
}

function leaderErrors(leader: LeaderElectionConfiguration): FieldError[] {
  const { leaderElect, leaseDuration, renewDeadline, resourceLock } = leader
  if (!leaderElect) return []
  const errors = (['leaseDuration', 'renewDeadline', 'retryPeriod'] as const).flatMap((name) =>
    durationMs(leader[name]) > 0 ? [] : [invalid(`leaderElection.${name}`, leader[name], 'must be greater than zero')],
  )
  if (durationMs(leaseDuration) <= durationMs(renewDeadline)) {
    errors.push(invalid('leaderElection.leaseDuration', renewDeadline, 'must be greater than `RenewDeadline`'))
  }
  if (resourceLock !== 'leases') {
    errors.push(invalid('leaderElection.resourceLock', resourceLock, 'resourceLock value must be "leases"'))
  }
  return errors
}

function profileErrors(
  profiles: readonly ProfileConfiguration[],
  at: number,
  profile: ProfileConfiguration,
  isEnabled: IsEnabled,
): FieldError[] {
  const path = index('profiles', at)
  const { schedulerName = '', percentageOfNodesToScore } = profile
  const isTaken = profiles.slice(0, at).some((one) => (one.schedulerName ?? '') === schedulerName)
  return [
    ...(schedulerName === '' ? [required(`${path}.schedulerName`)] : []),
    ...percentageErrors(`${path}.percentageOfNodesToScore`, percentageOfNodesToScore),
    ...POINTS.flatMap((point) => removedErrors(path, point, profile.plugins?.[point]?.enabled)),
    ...argsErrors(path, profile, isEnabled),
    ...(isTaken ? [duplicate(`${path}.schedulerName`, verbatim('{}'))] : []),
  ]
}

function percentageErrors(path: string, percentage = 0): FieldError[] {
  return percentage < 0 || percentage > 100 ? [invalid(path, percentage, 'not in valid range [0-100]')] : []
}

const REMOVED = ['AzureDiskLimits', 'CinderLimits', 'EBSLimits', 'GCEPDLimits']
const WAS_REMOVED = `was invalid in version "v1" (KubeSchedulerConfiguration is version "${GROUP_VERSION}")`

function removedErrors(path: string, point: Point, enabled: readonly PluginSetting[] = []): FieldError[] {
  return enabled.flatMap(({ name }, at) =>
    REMOVED.includes(name) ? [invalid(index(`${path}.plugins.${point}.enabled`, at), name, WAS_REMOVED)] : [],
  )
}

function argsErrors(path: string, { pluginConfig = [] }: ProfileConfiguration, isEnabled: IsEnabled): FieldError[] {
  return pluginConfig.flatMap(({ name, args = {} }, at) => {
    const where = index(`${path}.pluginConfig`, at)
    const isSeen = pluginConfig.slice(0, at).some((one) => one.name === name)
    const known = ARGS.get(name)
    const isJudged = known !== undefined && known.isJudgedLate !== true
    return [
      ...(isSeen ? [duplicate(where, name)] : []),
      ...(REMOVED.includes(name) ? [invalid(where, name, WAS_REMOVED)] : []),
      ...(isJudged ? known.errors(`${where}.args`, args as never, isEnabled) : []),
    ]
  })
}

/** One queue for all. */
function queueSortErrors(profiles: readonly ProfileConfiguration[]): FieldError[] {
  const first = profiles[0]?.plugins?.queueSort ?? {}
  const count = first.enabled?.length ?? 0
  const errors =
    count > 1
      ? [invalid('profiles[0].plugins.queueSort.Enabled', count, 'only one queue sort plugin can be enabled')]
      : []
  for (const [at, profile] of profiles.entries()) {
    const own = profile.plugins?.queueSort ?? {}
    if (semanticEqual(first, own)) continue
    const where = `${index('profiles', at)}.plugins.queueSort`
    errors.push(invalid(where, verbatim(setText(own)), 'must be the same for all profiles'))
  }
  return errors
}

/** As Go shows its own form of it. */
function setText({ enabled = [], disabled = [] }: PluginSet): string {
  const list = (plugins: readonly PluginSetting[]): object[] | null =>
    plugins.length === 0 ? null : plugins.map(({ name, weight = 0 }) => ({ Name: name, Weight: weight }))
  return JSON.stringify({ Enabled: list(enabled), Disabled: list(disabled) })
}

function extenderErrors(extenders: readonly ExtenderConfiguration[]): FieldError[] {
  const managed = new Set<string>()
  const errors = extenders.flatMap(({ prioritizeVerb = '', weight = 0, managedResources = [] }, at) => {
    const path = index('extenders', at)
    const unweighted = prioritizeVerb !== '' && weight <= 0
    return [
      ...(unweighted ? [invalid(`${path}.weight`, weight, 'must have a positive weight applied to it')] : []),
      ...managedResources.flatMap(({ name = '' }, place) => {
        const where = `${index(`${path}.managedResources`, place)}.name`
        const isSeen = managed.has(name)
        managed.add(name)
        return [
          ...resourceErrors(where, name),
          ...(isSeen ? [invalid(where, name, 'duplicate extender managed resource name')] : []),
        ]
      }),
    ]
  })
  const binders = extenders.filter(({ bindVerb = '' }) => bindVerb !== '').length
  if (binders < 2) return errors
  const found = `found ${binders} extenders implementing bind`
  return [...errors, invalid('extenders', found, 'only one extender can implement bind')]
}

function resourceErrors(path: string, name: string): FieldError[] {
  const complaints = qualifiedName(name)
  if (complaints.length > 0) return complaints.map((complaint) => invalid(path, name, complaint))
  return isExtendedResource(name) ? [] : [invalid(path, name, 'is an invalid extended resource name')]
}
