/** Finds the API server and the credentials: from flags, KUBECONFIG, the files of a pod and `~/.kube/config`. */
import { resolve } from 'node:path'

import { inClusterConfig } from '#client/connection/config.ts'
import { kubeconfigFiles } from '#client/connection/kubeconfig-files.ts'
import type { FlagValues } from '#lib/flags/flags.ts'
import { durationMs } from '#lib/go/duration.ts'
import { goQuote } from '#lib/go/text.ts'
import { ConfigError, InvalidConfigError } from '#model/kubeconfig/config-error.ts'
import type { ClusterEntry, UserEntry } from '#model/kubeconfig/entries.ts'
import { problemIn, userProblems } from '#model/kubeconfig/problems.ts'
import {
  chooseContext,
  confirmUsable,
  type ClientConfig,
  type Kubeconfig,
  type Overrides,
  type ReadText,
  readKubeconfigs,
} from '#model/kubeconfig/reading.ts'

import { KubectlError } from '../errors.ts'
import type { GlobalFlags } from '../global-flags.ts'

export type GlobalValues = FlagValues<{ readonly global: GlobalFlags }>

export interface ConfigSources {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly readFile: ReadText
}

/** The default server. */
const LOCAL = 'http://localhost:8080'

/** The merged contents of the files. Throws ConfigError. */
export async function rawConfig(flags: GlobalValues, sources: ConfigSources): Promise<Kubeconfig> {
  const { kubeconfig } = flags
  if (kubeconfig !== '') await requireFile(kubeconfig, sources)
  return readKubeconfigs(kubeconfigFiles(kubeconfig, sources.env), sources.readFile, resolve(sources.cwd))
}

async function requireFile(file: string, { readFile }: ConfigSources): Promise<void> {
  await readFile(file).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') throw new ConfigError(`stat ${file}: no such file or directory`, { cause })
    throw cause
  })
}

/** Upstream validates the configuration in this way when it looks up the namespace. Throws ConfigError. */
export async function confirmConfig(flags: GlobalValues, sources: ConfigSources): Promise<void> {
  const config = await rawConfig(flags, sources)
  if (isInPod(config, flags, sources)) return
  await confirmUsable(config, overridesOf(config, flags, sources), problemIn(sources.readFile))
}

/** Throws ConfigError. */
export async function clientConfig(flags: GlobalValues, sources: ConfigSources): Promise<ClientConfig> {
  const config = await rawConfig(flags, sources)
  const { context } = flags
  if (context !== '' && !config.contexts.has(context))
    throw new KubectlError(`context ${goQuote(context)} does not exist`)
  if (isInPod(config, flags, sources)) return inPodConfig(flags, sources)
  return chooseContext(config, overridesOf(config, flags, sources), problemIn(sources.readFile))
}

/** True if only the service account of a pod provides the server. */
function isInPod({ clusters, contexts }: Kubeconfig, { server }: GlobalValues, { env }: ConfigSources): boolean {
  return clusters.size === 0 && contexts.size === 0 && (env['KUBERNETES_SERVICE_HOST'] ?? '') !== '' && server === ''
}

function overridesOf(config: Kubeconfig, flags: GlobalValues, { env }: ConfigSources): Overrides {
  const address = flags.server || (hasServer(config, flags) ? '' : (env['KUBERNETES_MASTER'] ?? '') || LOCAL)
  return { ...chosenBy(flags), ...(address !== '' && { server: address }) }
}

function chosenBy(flags: GlobalValues): Overrides {
  const { context, cluster, user, namespace } = flags
  return {
    changeCluster: (entry) => clusterOf(entry, flags),
    changeUser: (entry) => userOf(entry, flags),
    ...(context !== '' && { context }),
    ...(cluster !== '' && { cluster }),
    ...(user !== '' && { user }),
    ...(namespace !== '' && { namespace }),
  }
}

/** True if the current context refers to a cluster with a server. */
function hasServer(config: Kubeconfig, { context, cluster }: GlobalValues): boolean {
  const { cluster: named = '' } = config.contexts.get(context || config.currentContext) ?? {}
  return config.clusters.get(cluster || named) !== undefined
}

/** The configuration of a pod's service account, with the flags applied. Throws ConfigError. */
async function inPodConfig(flags: GlobalValues, sources: ConfigSources): Promise<ClientConfig> {
  const config = await inClusterConfig(sources)
  const user = userOf(config.user, flags)
  const problems = await userProblems('', user, problemIn(sources.readFile))
  if (problems.length > 0) throw new InvalidConfigError(problems)
  return { ...config, cluster: clusterOf(config.cluster, flags), user }
}

function clusterOf(cluster: ClusterEntry, flags: GlobalValues): ClusterEntry {
  const { 'certificate-authority': ca, 'insecure-skip-tls-verify': isInsecure, 'tls-server-name': name } = flags
  const { 'certificate-authority': file, 'certificate-authority-data': data, ...rest } = cluster
  if (isInsecure) return { ...rest, 'insecure-skip-tls-verify': true, ...(name !== '' && { 'tls-server-name': name }) }
  return {
    ...rest,
    ...(ca === '' && file !== undefined && { 'certificate-authority': file }),
    ...(ca === '' && data !== undefined && { 'certificate-authority-data': data }),
    ...(ca !== '' && { 'certificate-authority': ca }),
    ...(name !== '' && { 'tls-server-name': name }),
  }
}

function userOf(user: UserEntry, flags: GlobalValues): UserEntry {
  const { token, username, password, 'client-certificate': certificate, 'client-key': key } = flags
  const { as, 'as-uid': uid, 'as-group': groups, 'as-user-extra': extra } = flags
  const added: UserEntry = {
    ...(username !== '' && { username }),
    ...(password !== '' && { password }),
    ...(as !== '' && { as }),
    ...(uid !== '' && { 'as-uid': uid }),
    ...(groups.length > 0 && { 'as-groups': groups }),
    ...(extra.length > 0 && { 'as-user-extra': extras(extra) }),
  }
  if (token !== '') return { ...withoutCredentials(user), ...added, token }
  const { 'client-certificate-data': certificateData, 'client-key-data': keyData, ...rest } = user
  return {
    ...rest,
    ...(certificate === '' && certificateData !== undefined && { 'client-certificate-data': certificateData }),
    ...(key === '' && keyData !== undefined && { 'client-key-data': keyData }),
    ...(certificate !== '' && { 'client-certificate': certificate }),
    ...(key !== '' && { 'client-key': key }),
    ...added,
  }
}

/** A given token replaces the client certificate, which would win otherwise. */
function withoutCredentials(user: UserEntry): UserEntry {
  const { tokenFile: _t, exec: _e, 'auth-provider': _p, ...rest } = user
  return rest
}

function extras(pairs: readonly string[]): Record<string, string[]> {
  const found: Record<string, string[]> = {}
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at < 0) throw new KubectlError(`invalid flag value ${pair} for --as-user-extra: expected KEY=VALUE`)
    ;(found[pair.slice(0, at)] ??= []).push(pair.slice(at + 1))
  }
  return found
}

/** Milliseconds; 0 means no timeout. Throws upstream's error for an invalid value. */
export function requestTimeoutMs(text: string): number {
  if (/^\d+$/.test(text)) return Number(text) * 1000
  try {
    return durationMs(text)
  } catch (cause) {
    throw new KubectlError(
      'Invalid timeout value. Timeout must be a single integer in seconds, or an integer followed by a corresponding time unit (e.g. 1s | 2m | 3h)',
      { cause },
    )
  }
}
