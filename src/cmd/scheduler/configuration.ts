/** Loads the configuration of kube-scheduler from its file and flags. */
import type { FlagGroups } from '#lib/flags/flags.ts'
import { durationMs, durationOfMs } from '#lib/go/duration.ts'
import { type Invocation, ProgramError } from '#lib/program.ts'
import { fileErrorText } from '#meta/config-kind.ts'
import { valueAt, withValueAt } from '#meta/config-rows.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import {
  CONFIGURATION,
  type GivenConfiguration,
  idleNotes,
  readConfiguration,
  type SchedulerConfiguration,
} from '#scheduler/configuration/configuration.ts'
import { withDefaults } from '#scheduler/configuration/defaults.ts'
import { planProfiles } from '#scheduler/configuration/profiles.ts'
import { configurationErrors } from '#scheduler/configuration/validation.ts'
import type { ProfileSettings } from '#scheduler/profiles.ts'

import type { SchedulerSettings } from './flags.ts'

export interface LoadedConfiguration {
  readonly configuration: SchedulerConfiguration
  readonly profiles: readonly ProfileSettings[]
  /** The settings after the configuration was applied. */
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

/** The fields with a flag, and their flags. */
const FLAGS = CONFIGURATION.options.flatMap(({ path, type, flag }) =>
  flag === undefined ? [] : [{ path, flag, isDuration: type === 'v1.Duration' }],
)

/** Leader election flags always apply, deprecated flags only without a file. */
function withFlags(
  configuration: SchedulerConfiguration,
  settings: SchedulerSettings,
  changed: ReadonlySet<string>,
): SchedulerConfiguration {
  const values = settings as unknown as Readonly<Record<string, unknown>>
  return FLAGS.filter(({ flag }) => changed.has(flag))
    .filter(({ path }) => settings.config === '' || path.startsWith('leaderElection.'))
    .reduce(
      (config, { path, flag, isDuration }) =>
        withValueAt(config, path, isDuration ? durationOfMs(values[flag] as number) : values[flag]),
      configuration,
    )
}

function settingsFrom(configuration: SchedulerConfiguration): Partial<SchedulerSettings> {
  const settings = FLAGS.map(({ path, flag, isDuration }) => {
    const value = valueAt(configuration, path)
    return [flag, isDuration ? durationMs(value as string) : value]
  })
  return Object.fromEntries(settings) as Partial<SchedulerSettings>
}
