/** Builds the scheduling profiles of a KubeSchedulerConfiguration. */
import { aggregateText } from '#meta/validation/field-error.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import { pointsOf, type ProfileSettings } from '../profiles.ts'
import type { ProfileConfiguration, SchedulerConfiguration } from './configuration.ts'
import { ARGS, type IsEnabled } from './plugin-args.ts'

/** Throws upstream's texts for an invalid profile. */
export function planProfiles(config: SchedulerConfiguration, isEnabled: IsEnabled): ProfileSettings[] {
  return config.profiles.map((profile) => {
    const settings = withoutIgnored(config, settingsOf(profile, config.percentageOfNodesToScore))
    try {
      pointsOf(settings)
      for (const [name, args] of Object.entries(settings.args)) {
        const known = ARGS.get(name)
        const errors = known?.isValidatedLate === true ? known.errors(fieldPath(''), args as never, isEnabled) : []
        if (errors.length > 0) throw new Error(`initializing plugin "${name}": ${aggregateText(errors)}`)
      }
    } catch (cause) {
      const message = `creating profile for scheduler name ${settings.name}: ${(cause as Error).message}`
      throw new Error(message, { cause })
    }
    return settings
  })
}

function settingsOf(profile: ProfileConfiguration, percentage: number): ProfileSettings {
  const { schedulerName = '', plugins = {}, pluginConfig = [], percentageOfNodesToScore = percentage } = profile
  const args = Object.fromEntries(pluginConfig.map((one) => [one.name, one.args ?? {}]))
  return { name: schedulerName, percentageOfNodesToScore, plugins, args }
}

/** Resources that extenders manage are ignored by NodeResourcesFit. */
function withoutIgnored({ extenders }: SchedulerConfiguration, settings: ProfileSettings): ProfileSettings {
  const managed = extenders.flatMap(({ managedResources = [] }) => managedResources)
  const ignored = managed.flatMap(({ name = '', ignoredByScheduler = false }) => (ignoredByScheduler ? [name] : []))
  if (ignored.length === 0) return settings
  const fit: { readonly ignoredResources?: readonly string[] } = settings.args['NodeResourcesFit'] ?? {}
  const ignoredResources = [...(fit.ignoredResources ?? []), ...ignored]
  return { ...settings, args: { ...settings.args, NodeResourcesFit: { ...fit, ignoredResources } } }
}
