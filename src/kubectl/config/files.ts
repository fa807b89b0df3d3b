/**
 * The files behind `kubectl config`: read in their order, of what several name the first has its way. What changed is written
 * to the file it came from, under the locks that upstream takes, and nothing else of that file changes.
 */
import { mkdir, open, readFile, rm, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'

import { isJsonObject, type JsonObject } from '#lib/json-value.ts'
import { parseYaml, stringifyYaml } from '#lib/yaml.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'

import { kubeconfigFiles } from '../client-config.ts'
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
  /** As they were named, in the order of reading. */
  readonly files: readonly string[]
  readonly isExplicit: boolean
  /** Where something new is written. */
  readonly target: string
  readonly cwd: string
}

type Around = Pick<Invocation, 'env' | 'cwd'> & { readonly flags: { readonly kubeconfig: string } }

export async function configFiles({ env, cwd, flags }: Around): Promise<ConfigFiles> {
  const files = kubeconfigFiles(flags.kubeconfig, { env })
  const isExplicit = flags.kubeconfig !== ''
  return { files, isExplicit, target: await targetOf(files, cwd), cwd }
}

/** The first that is there, else the last. */
async function targetOf(files: readonly string[], cwd: string): Promise<string> {
  for (const file of files) if (await isThere(resolve(cwd, file))) return file
  return files.at(-1) ?? ''
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

/** Everything the files say; files that are not there say nothing. Throws ConfigError. */
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

/** Throws what went wrong, as Go says it. */
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

export interface Writing {
  /** Paths that stand in what changed are written from the file they stand in, unless they lie outside of its folder. */
  readonly relativePaths: boolean
}

/** Makes the files say what `wanted` says. Throws KubectlError when somebody else is writing. */
export async function modifyConfiguration(
  places: ConfigFiles,
  wanted: Configuration,
  { relativePaths }: Writing,
): Promise<void> {
  const release = await lock(places)
  try {
    const before = await readConfiguration(places)
    const edits = new Map<string, Edit[]>()
    const add = (file: string, edit: Edit): void => void edits.set(file, [...(edits.get(file) ?? []), edit])
    await addHeads(places, { before, wanted }, add)
    for (const section of SECTION_NAMES) addStanzas(places, { section, before, wanted, relativePaths }, add)
    for (const [file, steps] of edits) await rewrite(file, places.cwd, steps)
  } finally {
    await release()
  }
}

type Edit = (config: Configuration) => Configuration

interface SectionChange extends Writing {
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

/** What stands in no section: the current context and the preferences. */
async function addHeads(
  places: ConfigFiles,
  { before, wanted }: { readonly before: Configuration; readonly wanted: Configuration },
  add: (file: string, edit: Edit) => void,
): Promise<void> {
  const { currentContext, preferences } = wanted
  if (before.currentContext !== currentContext) {
    const file = currentContext === '' ? await fileOfCurrent(places) : places.target
    add(file, (config) => ({ ...config, currentContext }))
  }
  if (JSON.stringify(before.preferences) !== JSON.stringify(preferences)) {
    add(places.files[0] ?? places.target, (config) => ({ ...config, preferences }))
  }
}

/** The first file that says which context is current. */
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
  // Loaded here: it brings parts of Node that take long to load, and most commands only read.
  const { writeFileAtomically } = await import('#lib/atomic-file.ts')
  await writeFileAtomically(path, stringifyYaml(configurationValue(next)), { mode })
}

/** Takes a lock beside each file; resolves to what gives them back. */
async function lock({ files, cwd }: ConfigFiles): Promise<() => Promise<void>> {
  const held: string[] = []
  const release = async (): Promise<void> => {
    for (const file of held) await rm(file, { force: true })
  }
  try {
    for (const file of [...files].sort()) {
      const path = resolve(cwd, file)
      await mkdir(dirname(path), { recursive: true, mode: 0o755 })
      await take(`${file}.lock`, cwd)
      held.push(`${path}.lock`)
    }
  } catch (error) {
    await release()
    throw error
  }
  return release
}

async function take(file: string, cwd: string): Promise<void> {
  const handle = await open(resolve(cwd, file), 'wx', 0).catch((cause: NodeJS.ErrnoException) => {
    throw cause.code === 'EEXIST' ? new KubectlError(`open ${file}: file exists`, { cause }) : cause
  })
  await handle.close()
}
