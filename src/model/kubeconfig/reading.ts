/**
 * Reads kubeconfigs like client-go: merges several files, of which the first wins, and resolves relative paths from the
 * file that contains them.
 */
import { dirname, isAbsolute, join, resolve } from 'node:path'

import { goQuote } from '#lib/go/text.ts'
import type { JsonValue } from '#lib/json/value.ts'
import { parseSimpleYaml } from '#lib/yaml/simple.ts'

import { ConfigError, InvalidConfigError } from './config-error.ts'
import type { ClusterEntry, UserEntry } from './entries.ts'
import { aggregated, clusterProblems, type ProblemOf, userProblems, wasMissing } from './problems.ts'

interface ContextEntry {
  readonly cluster?: string
  readonly user?: string
  readonly namespace?: string
}

export interface Kubeconfig {
  readonly clusters: ReadonlyMap<string, ClusterEntry>
  readonly users: ReadonlyMap<string, UserEntry>
  readonly contexts: ReadonlyMap<string, ContextEntry>
  /** The file of a user. */
  readonly origins: ReadonlyMap<string, string>
  readonly currentContext: string
}

/** Overrides from the command line. */
export interface Overrides {
  readonly context?: string
  readonly cluster?: string
  readonly user?: string
  readonly namespace?: string
  /** `--master`, `--server`. */
  readonly server?: string
  /** Applies further flags before the validation. */
  readonly changeCluster?: (cluster: ClusterEntry) => ClusterEntry
  readonly changeUser?: (user: UserEntry) => UserEntry
}

/** The server and the credentials. Paths are absolute. */
export interface ClientConfig {
  readonly cluster: ClusterEntry
  readonly user: UserEntry
  readonly namespace: string
  /** The file of the user, for credentials that must be stored there. */
  readonly origin?: { readonly file: string; readonly user: string }
}

export type ReadText = (path: string) => Promise<string>

/** Missing files are skipped. Throws ConfigError for unreadable ones. */
export async function readKubeconfigs(files: readonly string[], read: ReadText, cwd: string): Promise<Kubeconfig> {
  const found: Kubeconfig[] = []
  const problems: string[] = []
  for (const file of files.filter((name) => name !== '')) {
    try {
      found.push(await parseKubeconfig(await read(file), resolve(cwd, file)))
    } catch (error) {
      if (wasMissing(error)) continue
      problems.push(`error loading config file "${file}": ${(error as Error).message}`)
    }
  }
  if (problems.length > 0) throw new ConfigError(aggregated(problems))
  // The last entry of a map wins, so the first file comes last.
  const all = found.toReversed()
  return {
    clusters: new Map(all.flatMap(({ clusters }) => [...clusters])),
    users: new Map(all.flatMap(({ users }) => [...users])),
    contexts: new Map(all.flatMap(({ contexts }) => [...contexts])),
    origins: new Map(all.flatMap(({ origins }) => [...origins])),
    currentContext: found.find(({ currentContext }) => currentContext !== '')?.currentContext ?? '',
  }
}

/** Throws for a text that is no kubeconfig. */
export async function parseKubeconfig(source: string, file: string): Promise<Kubeconfig> {
  const parsed = parseSimpleYaml(source) ?? (await parsedText(source))
  if (typeof parsed !== 'object' || Array.isArray(parsed)) throw new Error('it is not a kubeconfig')
  const config = parsed as Readonly<Record<string, unknown>>
  const current = config['current-context']
  const absolute = <T extends object>(entry: T, fields: readonly string[]): T => withPaths(entry, fields, dirname(file))
  const users = named<UserEntry>(config, 'users', 'user')
  return {
    clusters: new Map(
      named<ClusterEntry>(config, 'clusters', 'cluster').map(([name, entry]) => [
        name,
        absolute(entry, ['certificate-authority']),
      ]),
    ),
    users: new Map(
      users.map(([name, entry]) => [
        name,
        withCommand(absolute(entry, ['client-certificate', 'client-key', 'tokenFile']), dirname(file)),
      ]),
    ),
    contexts: new Map(named<ContextEntry>(config, 'contexts', 'context')),
    origins: new Map(users.map(([name]) => [name, file])),
    currentContext: typeof current === 'string' ? current : '',
  }
}

async function parsedText(source: string): Promise<JsonValue> {
  if (source.trim() === '') return {}
  return (await import('#lib/yaml/yaml.ts')).parseYaml(source) ?? {}
}

function named<T extends object>(config: Readonly<Record<string, unknown>>, list: string, part: string): [string, T][] {
  const entries = config[list] ?? []
  if (!Array.isArray(entries)) throw new Error(`"${list}" must be a list`)
  return entries.map((entry: Readonly<Record<string, unknown>> | null) => {
    const value = entry?.[part] ?? {}
    if (typeof entry?.['name'] !== 'string' || typeof value !== 'object')
      throw new Error(`"${list}" has an entry without name`)
    return [entry['name'], value as T]
  })
}

function withPaths<T extends object>(entry: T, fields: readonly string[], folder: string): T {
  const paths = Object.entries(entry).filter(
    ([name, value]) => fields.includes(name) && typeof value === 'string' && value !== '' && !isAbsolute(value),
  )
  return { ...entry, ...Object.fromEntries(paths.map(([name, value]) => [name, join(folder, String(value))])) }
}

/** A command with a slash is relative to the file; others are searched in PATH. */
function withCommand(user: UserEntry, folder: string): UserEntry {
  const { exec } = user
  if (exec?.command === undefined || !exec.command.includes('/') || isAbsolute(exec.command)) return user
  return { ...user, exec: { ...exec, command: join(folder, exec.command) } }
}

/** Throws ConfigError. */
export async function chooseContext(
  config: Kubeconfig,
  overrides: Overrides,
  problemOf: ProblemOf,
): Promise<ClientConfig> {
  requireNamed(config, overrides)
  await confirmUsable(config, overrides, problemOf)
  const { user, cluster, names } = chosen(config, overrides)
  const file = config.origins.get(names.user)
  const origin = file !== undefined && { origin: { file, user: names.user } }
  return { cluster, user, namespace: names.namespace, ...origin }
}

/**
 * Throws InvalidConfigError with the problems of the chosen context. Unlike `chooseContext`, reports a missing cluster as
 * one without a server, and accepts a missing user.
 */
export async function confirmUsable(config: Kubeconfig, overrides: Overrides, problemOf: ProblemOf): Promise<void> {
  const { user, cluster, names } = chosen(config, overrides)
  const isMissing = overrides.cluster !== undefined && !config.clusters.has(overrides.cluster)
  const problems = [
    ...(names.context === '' || config.contexts.has(names.context)
      ? []
      : [`context was not found for specified context: ${names.context}`]),
    ...(await userProblems(names.user, user, problemOf)),
    ...(await clusterProblems(names.cluster, isMissing ? { server: '' } : cluster, problemOf)),
  ]
  if (problems.length > 0) throw new InvalidConfigError(problems)
}

interface ContextChoice extends Pick<ClientConfig, 'cluster' | 'user'> {
  readonly names: {
    readonly context: string
    readonly cluster: string
    readonly user: string
    readonly namespace: string
  }
}

function chosen(config: Kubeconfig, overrides: Overrides): ContextChoice {
  const name = overrides.context ?? config.currentContext
  const context: ContextEntry = config.contexts.get(name) ?? {}
  const { user = '', cluster = '', namespace = '' } = { ...context, ...overrides }
  const { changeCluster = (entry) => entry, changeUser = (entry) => entry } = overrides
  return {
    user: changeUser(config.users.get(user) ?? {}),
    cluster: changeCluster(withServer(config.clusters.get(cluster) ?? {}, overrides.server ?? '')),
    names: { context: name, cluster, user, namespace },
  }
}

/** A name on the command line must exist; a name in a context need not. Throws ConfigError. */
function requireNamed({ users, contexts, clusters }: Kubeconfig, { user, context, cluster }: Overrides): void {
  const named: [name: string | undefined, entries: ReadonlyMap<string, unknown>, what: string][] = [
    [user, users, 'auth info'],
    [context, contexts, 'context'],
    [cluster, clusters, 'cluster'],
  ]
  for (const [name, entries, what] of named) {
    if (name !== undefined && !entries.has(name)) throw new ConfigError(`${what} ${goQuote(name)} does not exist`)
  }
}

/** Another server invalidates the TLS server name. */
function withServer(cluster: ClusterEntry, server: string): ClusterEntry {
  if (server === '') return cluster
  const { 'tls-server-name': _, ...rest } = cluster
  return { ...rest, server }
}
