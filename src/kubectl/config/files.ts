/**
 * Reads and writes the files of `kubectl config`. The first file that defines a value wins. A change goes to the file
 * that defines the value, under upstream's lock files; the rest of that file stays unchanged.
 */
import { readFile, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'

import { kubeconfigFiles, kubeconfigForNewEntries } from '#client/connection/kubeconfig-files.ts'
import { isJsonObject, type JsonObject } from '#lib/json/value.ts'
import { parseYaml, stringifyYaml } from '#lib/yaml/yaml.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'

import type { Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { goFileError } from '../printing.ts'
import {
  type Configuration,
  configurationOf,
  configurationValue,
  EMPTY,
  SECTION_NAMES,
  type SectionName,
  SECTIONS,
  type Stanza,
  withStanza,
} from './stanzas.ts'

export interface ConfigFiles {
  /** The paths as given, in reading order. */
  readonly files: readonly string[]
  readonly isExplicit: boolean
  /** The file that receives new values. */
  readonly target: string
  readonly cwd: string
}

type ConfigContext = Pick<Invocation, 'env' | 'cwd'> & { readonly flags: { readonly kubeconfig: string } }

export async function configFiles({ env, cwd, flags }: ConfigContext): Promise<ConfigFiles> {
  const files = kubeconfigFiles(flags.kubeconfig, env)
  const isExplicit = flags.kubeconfig !== ''
  return { files, isExplicit, target: await kubeconfigForNewEntries(files, cwd), cwd }
}

/** The merged contents of the files; missing files count as empty. Throws ConfigError. */
export async function readConfiguration({ files, cwd }: ConfigFiles): Promise<Configuration> {
  const found: Configuration[] = []
  const problems: string[] = []
  for (const file of files.filter((name) => name !== '')) {
    try {
      found.push(await readOne(file, cwd))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue
      problems.push(`error loading config file "${file}": ${(error as Error).message}`)
    }
  }
  if (problems.length > 0) throw new ConfigError(problems.length === 1 ? problems.join('') : `[${problems.join(', ')}]`)
  return merged(found)
}

/** Throws Go's text for the error. */
export async function readStrictly(file: string, cwd: string): Promise<Configuration> {
  return readOne(file, cwd).catch((error: NodeJS.ErrnoException) => {
    throw new KubectlError(error.code === undefined ? error.message : goFileError(file, error), { cause: error })
  })
}

async function readOne(file: string, cwd: string): Promise<Configuration> {
  const text = await readFile(resolve(cwd, file), 'utf8')
  return configurationOf(parseYaml(text), file)
}

function merged(found: readonly Configuration[]): Configuration {
  const all = found.toReversed()
  const section = (name: SectionName): Map<string, Stanza> => new Map(all.flatMap((one) => [...one[name]]))
  return {
    clusters: section('clusters'),
    users: section('users'),
    contexts: section('contexts'),
    currentContext: found.find(({ currentContext }) => currentContext !== '')?.currentContext ?? '',
    preferences: Object.assign({}, ...all.map(({ preferences }) => preferences)) as JsonObject,
    extensions: found.flatMap(({ extensions }) => extensions),
  }
}

export interface WriteOptions {
  /** Paths in changed values become relative to their file, unless they lie outside of its folder. */
  readonly relativePaths: boolean
}

/** Writes `wanted` to the files. Throws KubectlError if another process holds a lock. */
export async function modifyConfiguration(
  kubeconfigs: ConfigFiles,
  wanted: Configuration,
  { relativePaths }: WriteOptions,
): Promise<void> {
  await using _locks = await lock(kubeconfigs)
  const before = await readConfiguration(kubeconfigs)
  const edits = new Map<string, Edit[]>()
  const add = (file: string, edit: Edit): void => void edits.set(file, [...(edits.get(file) ?? []), edit])
  await addHeads(kubeconfigs, { before, wanted }, add)
  for (const section of SECTION_NAMES) addStanzas(kubeconfigs, { section, before, wanted, relativePaths }, add)
  for (const [file, steps] of edits) await rewrite(file, kubeconfigs.cwd, steps)
}

type Edit = (config: Configuration) => Configuration

interface SectionChange extends WriteOptions {
  readonly section: SectionName
  readonly before: Configuration
  readonly wanted: Configuration
}

function addStanzas(
  { target, cwd }: ConfigFiles,
  { section, before, wanted, relativePaths }: SectionChange,
  add: (file: string, edit: Edit) => void,
): void {
  const changed = [...wanted[section]].filter(([name, stanza]) => !isSame(before[section].get(name), stanza))
  for (const [name, stanza] of changed) {
    const file = stanza.origin || target
    const { fields } = stanza
    const shown = relativePaths ? withRelativePaths(fields, section, resolve(cwd, dirname(file))) : fields
    add(file, (config) => withStanza(config, section, name, { fields: shown, origin: file }))
  }
  const gone = [...before[section]].filter(([name]) => !wanted[section].has(name))
  for (const [name, { origin }] of gone) {
    add(origin || target, (config) => withStanza(config, section, name, undefined))
  }
}

/** Values outside of the sections: the current context and the preferences. */
async function addHeads(
  kubeconfigs: ConfigFiles,
  { before, wanted }: { readonly before: Configuration; readonly wanted: Configuration },
  add: (file: string, edit: Edit) => void,
): Promise<void> {
  const { currentContext, preferences } = wanted
  if (before.currentContext !== currentContext) {
    const file = currentContext === '' ? await fileOfCurrent(kubeconfigs) : kubeconfigs.target
    add(file, (config) => ({ ...config, currentContext }))
  }
  if (JSON.stringify(before.preferences) !== JSON.stringify(preferences)) {
    add(kubeconfigs.files[0] ?? kubeconfigs.target, (config) => ({ ...config, preferences }))
  }
}

/** The first file with a current context. */
async function fileOfCurrent({ files, target, cwd }: ConfigFiles): Promise<string> {
  for (const file of files) {
    const config = await readOne(file, cwd).catch(() => EMPTY)
    if (config.currentContext !== '') return file
  }
  return target
}

function isSame(one: Stanza | undefined, other: Stanza): boolean {
  return one !== undefined && one.origin === other.origin && JSON.stringify(one.fields) === JSON.stringify(other.fields)
}

function withRelativePaths(fields: Readonly<JsonObject>, section: SectionName, base: string): JsonObject {
  const out: JsonObject = { ...fields }
  for (const name of SECTIONS[section].paths) {
    const path = out[name]
    if (typeof path === 'string') out[name] = relativePath(path, base)
  }
  const { exec } = out
  if (isJsonObject(exec ?? null)) {
    const { command, ...rest } = exec as JsonObject
    if (typeof command === 'string')
      out['exec'] = { command: command.includes('/') ? relativePath(command, base) : command, ...rest }
  }
  return out
}

function relativePath(path: string, base: string): string {
  const whole = isAbsolute(path) ? path : join(base, path)
  const short = relative(base, whole) || '.'
  return short.startsWith('../') ? whole : short
}

async function rewrite(file: string, cwd: string, edits: readonly Edit[]): Promise<void> {
  const path = resolve(cwd, file)
  const now = await readOne(file, cwd).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return EMPTY
    throw new KubectlError(error.message, { cause: error })
  })
  const next = edits.reduce((config, edit) => edit(config), now)
  const mode = await stat(path).then(
    (info) => info.mode & 0o777,
    () => 0o600,
  )
  // Loaded here because it loads slow parts of Node, and most commands only read.
  const { writeFileAtomically } = await import('#lib/files/atomic-file.ts')
  await writeFileAtomically(path, stringifyYaml(configurationValue(next)), { mode })
}

/** Locks every file. Throws KubectlError if another program has locked one of them. */
async function lock({ files, cwd }: ConfigFiles): Promise<AsyncDisposableStack> {
  // Loaded here, because most commands only read.
  const { createLock } = await import('#client/connection/kubeconfig-lock.ts')
  await using locks = new AsyncDisposableStack()
  for (const file of [...files].sort()) {
    const taken = await createLock(resolve(cwd, file)).catch((cause: NodeJS.ErrnoException) => {
      throw cause.code === 'EEXIST' ? new KubectlError(`open ${file}.lock: file exists`, { cause }) : cause
    })
    locks.use(taken)
  }
  return locks.move()
}
