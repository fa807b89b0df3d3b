/** What kube-scheduler is told: by its file, and by the flags that count beside it or, without one, in its place. */
import type { FlagGroups } from '#lib/flags/flags.ts'
import { type Invocation, ProgramError } from '#lib/program.ts'
import { fileErrorText } from '#meta/config-kind.ts'
import { durationMs, durationOfMs } from '#meta/duration.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import {
  type GivenConfiguration,
  idleNotes,
  readConfiguration,
  type SchedulerConfiguration,
} from '#scheduler/configuration/configuration.ts'
import { withDefaults } from '#scheduler/configuration/defaults.ts'
import { planProfiles } from '#scheduler/configuration/profiles.ts'
import { configurationErrors } from '#scheduler/configuration/validation.ts'
import type { ProfileSettings } from '#scheduler/profiles.ts'

import type { SchedulerSettings } from './scheduler-flags.ts'

export interface LoadedConfiguration {
  readonly configuration: SchedulerConfiguration
  readonly profiles: readonly ProfileSettings[]
  /** Settings with what the configuration says of them. */
  readonly settings: SchedulerSettings
}

/** Throws ProgramError with upstream's texts. */
export async function loadConfiguration(
  { readFile, changed, log }: Invocation<FlagGroups>,
  settings: SchedulerSettings,
  isEnabled: (gate: string) => boolean,
): Promise<LoadedConfiguration> {
  const { config: file } = settings
  const given = file === '' ? {} : await readGiven(file, readFile)
  for (const note of idleNotes(given)) log.info(note)
  const configuration = withFlags(withDefaults(given, isEnabled), settings, changed)
  const errors = configurationErrors(configuration, isEnabled)
  if (file !== '' && errors.length > 0) throw new ProgramError(aggregateText(errors))
  try {
    return {
      configuration,
      profiles: planProfiles(configuration, isEnabled),
      settings: { ...settings, ...settingsFrom(configuration) },
    }
  } catch (cause) {
    throw new ProgramError(`initializing profiles: ${(cause as Error).message}`, { cause })
  }
}

async function readGiven(file: string, readFile: (path: string) => Promise<string>): Promise<GivenConfiguration> {
  let source
  try {
    source = await readFile(file)
  } catch (cause) {
    throw new ProgramError(fileErrorText(file, cause as NodeJS.ErrnoException), { cause })
  }
  try {
    return readConfiguration(source)
  } catch (cause) {
    throw new ProgramError((cause as Error).message, { cause })
  }
}

/** Those of leader election count always, the deprecated ones only without a file. */
function withFlags(
  configuration: SchedulerConfiguration,
  settings: SchedulerSettings,
  changed: ReadonlySet<string>,
): SchedulerConfiguration {
  const chosen = <V>(flag: keyof SchedulerSettings, value: V, otherwise: V): V =>
    changed.has(flag) ? value : otherwise
  const duration = (flag: `leader-elect-${'lease-duration' | 'renew-deadline' | 'retry-period'}`, otherwise: string) =>
    chosen(flag, durationOfMs(settings[flag]), otherwise)
  const { leaderElection: leader, clientConnection: client } = configuration
  const leaderElection = {
    ...leader,
    leaderElect: chosen('leader-elect', settings['leader-elect'], leader.leaderElect),
    leaseDuration: duration('leader-elect-lease-duration', leader.leaseDuration),
    renewDeadline: duration('leader-elect-renew-deadline', leader.renewDeadline),
    retryPeriod: duration('leader-elect-retry-period', leader.retryPeriod),
    resourceName: chosen('leader-elect-resource-name', settings['leader-elect-resource-name'], leader.resourceName),
    resourceNamespace: chosen(
      'leader-elect-resource-namespace',
      settings['leader-elect-resource-namespace'],
      leader.resourceNamespace,
    ),
  }
  if (settings.config !== '') return { ...configuration, leaderElection }
  const clientConnection = {
    ...client,
    kubeconfig: settings.kubeconfig,
    qps: settings['kube-api-qps'],
    burst: settings['kube-api-burst'],
  }
  return { ...configuration, leaderElection, clientConnection, enableProfiling: settings.profiling }
}

function settingsFrom({
  leaderElection,
  clientConnection,
  enableProfiling,
}: SchedulerConfiguration): Partial<SchedulerSettings> {
  return {
    'leader-elect': leaderElection.leaderElect,
    'leader-elect-lease-duration': durationMs(leaderElection.leaseDuration),
    'leader-elect-renew-deadline': durationMs(leaderElection.renewDeadline),
    'leader-elect-retry-period': durationMs(leaderElection.retryPeriod),
    'leader-elect-resource-name': leaderElection.resourceName,
    'leader-elect-resource-namespace': leaderElection.resourceNamespace,
    'kube-api-qps': clientConnection.qps,
    'kube-api-burst': clientConnection.burst,
    kubeconfig: clientConnection.kubeconfig,
    profiling: enableProfiling,
  }
}
