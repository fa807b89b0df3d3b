/** Opens the history of the store from the settings: what is kept of each object, and for how long. */
import { resolve } from 'node:path'

import { Secrets } from '#apis/core/v1.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { readText } from '#component/live-files.ts'
import { Historian } from '#history/historian.ts'
import { LongHistory } from '#history/long-history.ts'
import { DEFAULT_POLICY, type HistoryPolicy, type Level, levelOf } from '#history/policy.ts'
import { ProgramError } from '#lib/program.ts'
import type { Backend } from '#storage/backend.ts'
import { type AtRest, isSealed } from '#storage/encryption/at-rest.ts'
import { prepareValues } from '#storage/encryption/prepared-backend.ts'

import { parseHistoryPolicy } from './config/history-policy.ts'
import type { Environment } from './environment.ts'
import { metadataOnly, secretWithoutValues } from './past/past-values.ts'

export interface HistoryParts {
  readonly backend: Backend
  readonly registry: Registry
  readonly atRest: AtRest
}

/** Without a file, the history is what the store keeps. Throws ProgramError for an unusable policy. */
export async function openHistory(
  environment: Environment,
  { backend, registry, atRest }: HistoryParts,
): Promise<LongHistory> {
  const { settings, clock, random, log, cwd, closing } = environment
  const policy = await readPolicy(environment)
  if (settings['history-file'] === '') return new LongHistory(backend, undefined)
  const { trail } = registry.services
  const historian = new Historian({
    backend: prepareValues(backend, atRest),
    clock,
    random,
    log,
    contentOf: contentReader(policy, { registry, atRest }),
    noteOf: (revision) => {
      const note = trail.of(revision)
      return note === undefined ? '' : JSON.stringify(note)
    },
    settings: { file: resolve(cwd, settings['history-file']), limits: policy },
  })
  closing.defer(() => historian.close())
  return new LongHistory(backend, historian)
}

async function readPolicy({ settings, readFile }: Environment): Promise<HistoryPolicy> {
  const file = settings['history-policy-file']
  if (file === '') return DEFAULT_POLICY
  try {
    return parseHistoryPolicy(await readText(readFile, file))
  } catch (cause) {
    throw new ProgramError(`--history-policy-file "${file}": ${(cause as Error).message}`, { cause })
  }
}

interface Kept {
  readonly resource: { readonly group: string; readonly resource: string }
  readonly level: Level
}

function contentReader(
  policy: HistoryPolicy,
  { registry, atRest }: Pick<HistoryParts, 'registry' | 'atRest'>,
): (key: string, value: Uint8Array) => Uint8Array | undefined {
  const known = new Map<string, Kept>()
  const keptOf = (key: string): Kept => {
    const [short, long] = foldersOf(key)
    const found = known.get(short) ?? known.get(long)
    if (found !== undefined) return found
    for (const folder of [short, long]) {
      const resource = registry.resourceAt(folder)
      if (resource === undefined) continue
      const kept = { resource, level: levelOf(policy, resource) }
      known.set(folder, kept)
      return kept
    }
    const resource = customResourceOf(long)
    return { resource, level: levelOf(policy, resource) }
  }
  return (key, value) => {
    const { resource, level } = keptOf(key)
    if (level === 'None') return undefined
    if (level === 'All') return value
    const opened = Buffer.from(isSealed(value) ? atRest.resting(resource).open(key, value) : value)
    const isSecret = resource.group === Secrets.group && resource.resource === Secrets.plural
    return isSecret ? secretWithoutValues(opened) : metadataOnly(opened)
  }
}

/** `/registry/pods/` and `/registry/pods/default/`: the prefix of a resource has one folder or two. */
function foldersOf(key: string): readonly [short: string, long: string] {
  const second = key.indexOf('/', '/registry/'.length) + 1
  const third = key.indexOf('/', second) + 1
  return [key.slice(0, second), key.slice(0, third === 0 ? second : third)]
}

/** Of a kind that is not served now: `/registry/example.com/widgets/`. */
function customResourceOf(folder: string): Kept['resource'] {
  const [, , group = '', resource = ''] = folder.split('/')
  return group.includes('.') ? { group, resource } : { group: '', resource: group }
}
