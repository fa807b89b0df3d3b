/** Loads the configuration of the kubelet: from its file, the drop-ins, and the flags, which take precedence. */
import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import { withFlags } from '#component/flags/config-flags.ts'
import { createGates, FEATURE_GATES, gateErrors } from '#component/flags/gates.ts'
import { CONFIGURATION, type KubeletConfiguration } from '#kubelet/configuration/configuration.ts'
import { withDefaults } from '#kubelet/configuration/defaults.ts'
import { type ConfigurationFile, loadFile, mergeDropIns } from '#kubelet/configuration/loading.ts'
import { unsupportedIn } from '#kubelet/configuration/support.ts'
import { configurationErrors } from '#kubelet/configuration/validation.ts'
import { reservedError, thresholdsError } from '#kubelet/node/allocatable.ts'
import { type FeatureGates, featureGates } from '#lib/flags/feature-gates.ts'
import { findUnsupported } from '#lib/flags/flag-support.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import { type Invocation, ProgramError } from '#lib/program.ts'
import { labelValue, qualifiedName } from '#meta/validation/names.ts'

import { KUBELET_FLAGS, type KubeletSettings } from './flags.ts'

export interface LoadedKubelet {
  readonly configuration: KubeletConfiguration
  readonly isEnabled: (gate: string) => boolean
}

/** Throws ProgramError with upstream's texts. */
export async function loadKubelet(
  invocation: Invocation<FlagGroups>,
  settings: KubeletSettings,
  isCgroupV1: boolean,
): Promise<LoadedKubelet> {
  const { changed, flags, log } = invocation
  const labels = labelsError(settings['node-labels'])
  if (labels !== undefined) throw new ProgramError(`failed to validate kubelet flags: ${labels}`)
  const fromFiles = await loadFiles(invocation, settings)
  const given = withFlags(CONFIGURATION, fromFiles ?? withDefaults({}), invocation)
  const configuration = {
    ...given,
    featureGates: gatesOf(given, settings['feature-gates']),
    logging: loggingOf(given, invocation),
  }
  const featureGates = new Map(Object.entries(configuration.featureGates))
  const isEnabled = createGates(featureGates)
  const errors = [...gateErrors(featureGates), ...configurationErrors(configuration, { isEnabled, isCgroupV1 })]
  if (errors.length > 0) throw new ProgramError(`failed to validate kubelet configuration, error: ${aggregate(errors)}`)
  const support = findUnsupported(KUBELET_FLAGS, flags, changed)
  const fields = unsupportedIn(configuration)
  const refused = [...support.errors, ...fields.errors]
  if (refused.length > 0) throw new ProgramError(aggregate(refused))
  const wrong = reservedError(configuration) ?? thresholdsError(configuration.evictionSoft)
  if (wrong !== undefined) throw new ProgramError(`failed to run Kubelet: ${wrong}`)
  for (const note of [...support.notes, ...fields.notes]) log.info(note)
  return { configuration, isEnabled }
}

/** Joined like upstream. */
function aggregate(errors: readonly string[]): string {
  return errors.length === 1 ? errors.join('') : `[${errors.join(', ')}]`
}

async function loadFiles(
  invocation: Invocation<FlagGroups>,
  { config: file, 'config-dir': folder }: KubeletSettings,
): Promise<KubeletConfiguration | undefined> {
  if (file === '' && folder === '') return undefined
  const base = file === '' ? withDefaults({}) : await loadBase(invocation, file)
  if (folder === '') return base
  try {
    return mergeDropIns(base, await dropInsOf(invocation, folder))
  } catch (cause) {
    const path = resolve(invocation.cwd, folder)
    throw new ProgramError(
      `failed to merge kubelet configs: failed to walk through kubelet dropin directory "${path}": ${(cause as Error).message}`,
      { cause },
    )
  }
}

async function loadBase({ cwd, readFile, log }: Invocation<FlagGroups>, file: string): Promise<KubeletConfiguration> {
  const path = resolve(cwd, file)
  try {
    const source = await readFile(path).catch((cause: NodeJS.ErrnoException) => {
      const why = cause.code === 'ENOENT' ? `open ${path}: no such file or directory` : cause.message
      throw new Error(`failed to read kubelet config file "${path}", error: ${why}`, { cause })
    })
    return loadFile({ path, source }, (err) => log.info('Using lenient decoding as strict decoding failed', { err }))
  } catch (cause) {
    const why = `failed to load Kubelet config file ${file}, error ${(cause as Error).message}`
    throw new ProgramError(`failed to load kubelet config file, path: ${file}, error: ${why}`, { cause })
  }
}

const DROP_IN = '.conf'

/** Sorted by name, folder by folder. */
async function dropInsOf(
  { cwd, readFile, log }: Invocation<FlagGroups>,
  folder: string,
): Promise<readonly ConfigurationFile[]> {
  const path = resolve(cwd, folder)
  const entries = await readdir(path, { recursive: true, withFileTypes: true }).catch((cause: Error) => {
    throw new Error(`lstat ${path}: no such file or directory`, { cause })
  })
  const files = entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))
  for (const file of files.filter((name) => !name.endsWith(DROP_IN))) {
    log.v(4)?.info('Skipped file in drop-in directory (does not have .conf extension)', { file })
  }
  const wanted = files.filter((name) => name.endsWith(DROP_IN)).sort(byParts)
  return Promise.all(wanted.map(async (file) => ({ path: file, source: await readFile(file) })))
}

function byParts(a: string, b: string): number {
  const [left, right] = [a.split('/'), b.split('/')]
  const at = left.findIndex((part, place) => part !== right[place])
  return (left[at] ?? '') < (right[at] ?? '') ? -1 : 1
}

const gates = featureGates(FEATURE_GATES)

/** Feature gates of flags take precedence over those of files. */
function gatesOf({ featureGates: given = {} }: KubeletConfiguration, flags: FeatureGates): Record<string, boolean> {
  try {
    return Object.fromEntries([...(gates.read?.(given) ?? []), ...flags])
  } catch (cause) {
    throw new ProgramError(`failed to set feature gates from initial flags-based config: ${(cause as Error).message}`, {
      cause,
    })
  }
}

/** Log settings of files apply as far as they can change after the log is open. */
function loggingOf(
  { logging }: KubeletConfiguration,
  { flags, changed, setVerbosity }: Invocation<FlagGroups>,
): KubeletConfiguration['logging'] {
  const format = String(flags['logging-format'])
  if (logging.format !== format && !changed.has('logging-format')) {
    throw new ProgramError(`logging.format "${logging.format}" is not supported here: set --logging-format`)
  }
  const verbosity = changed.has('v') ? Number(flags['v']) : logging.verbosity
  setVerbosity(verbosity)
  return { ...logging, format, verbosity }
}

/** Nodes may not set labels in Kubernetes' namespaces, except these. */
const OWN_LABELS = [
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'beta.kubernetes.io/os',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'kubernetes.io/arch',
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
]
const OWN_NAMESPACES = ['kubelet.kubernetes.io', 'node.kubernetes.io']

function labelsError(labels: ReadonlyMap<string, string>): string | undefined {
  const within = (namespace: string, of: string): boolean => namespace === of || namespace.endsWith(`.${of}`)
  const unknown = [...labels.keys()].filter((key) => {
    const namespace = key.includes('/') ? key.slice(0, key.indexOf('/')) : ''
    const isOfKubernetes = within(namespace, 'kubernetes.io') || within(namespace, 'k8s.io')
    return isOfKubernetes && !OWN_LABELS.includes(key) && !OWN_NAMESPACES.some((own) => within(namespace, own))
  })
  if (unknown.length > 0) {
    return (
      `unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [${unknown.sort().join(' ')}]\n` +
      `--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (${OWN_NAMESPACES.join(', ')}) or be in the specifically allowed set (${OWN_LABELS.join(', ')})`
    )
  }
  const wrong = [...labels].flatMap(([key, value]) => [
    ...complaint(key, qualifiedName(key)),
    ...complaint(value, labelValue(value)),
  ])
  return wrong.length === 0 ? undefined : `invalid node labels: ${wrong.join('; ')}`
}

function complaint(about: string, errors: readonly string[]): string[] {
  return errors.length === 0 ? [] : [`'${about}' - ${errors.join(', ')}`]
}
