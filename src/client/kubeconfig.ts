/** Kubeconfig files: where clusters are and who we are to them. Other people's entries in a file are left alone. */
import { mkdir, readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

import { isWrittenInPlace, writeFileAtomically } from '#lib/atomic-file.ts'
import { parseYaml, stringifyYaml } from '#lib/yaml.ts'
import type { ClusterEntry } from '#model/kubeconfig/entries.ts'

interface Named {
  readonly name: string
}

interface NamedCluster extends Named {
  readonly cluster?: ClusterEntry
}

interface KubeconfigFile {
  readonly apiVersion?: string
  readonly kind?: string
  readonly clusters?: readonly NamedCluster[]
  readonly users?: readonly Named[]
  readonly contexts?: readonly Named[]
  readonly 'current-context'?: string
  readonly preferences?: object
}

/** One cluster and one way in. Certificates and keys are PEM. */
export interface KubeconfigEntry {
  /** Names the cluster, the user and the context alike. */
  readonly name: string
  readonly server: string
  readonly certificateAuthority: string
  readonly clientCertificate: string
  readonly clientKey: string
  /** Whose entry it is: names that are somebody else's are left alone. */
  readonly owner?: string
}

/** Where an entry says whose it is; kubectl keeps what it does not know. */
const OWNER = 'hyperkube.io/owner'
/** The context that was current before the entry's. It is current again when the entry is removed. */
const PREVIOUS = 'hyperkube.io/previous-context'

/** A kubeconfig with nothing but this entry. */
export function kubeconfigText(entry: KubeconfigEntry): string {
  return stringifyYaml(merged({}, entry))
}

/** Puts the entry into the file, in place of one of its name, and makes it current. The file is for its owner only. */
export async function mergeKubeconfig(file: string, entry: KubeconfigEntry): Promise<void> {
  const before = await readKubeconfig(file)
  await mkdir(dirname(file), { recursive: true })
  await writeFileAtomically(file, stringifyYaml(merged(before, entry)), { mode: 0o600 })
}

/** The first of the names that is the owner's already, by word or by authority, or nobody's; undefined when all are taken. */
export async function freeName(
  file: string,
  names: readonly string[],
  { owner, certificateAuthority }: Pick<KubeconfigEntry, 'certificateAuthority'> & { readonly owner: string },
): Promise<string | undefined> {
  const { clusters = [], users = [], contexts = [] } = await readKubeconfig(file)
  const authority = base64(certificateAuthority)
  const isFree = (name: string): boolean => [...clusters, ...users, ...contexts].every((entry) => entry.name !== name)
  const isOwn = (entry: NamedCluster): boolean =>
    ownerOf(entry) === owner || entry.cluster?.['certificate-authority-data'] === authority
  return names.find((name) => isFree(name) || clusters.some((entry) => entry.name === name && isOwn(entry)))
}

/** Takes out all that is the owner's; returns the names. */
export async function removeOwned(file: string, owner: string): Promise<string[]> {
  const { clusters = [] } = await readKubeconfig(file)
  const names = clusters.filter((entry) => ownerOf(entry) === owner).map(({ name }) => name)
  for (const name of names) await removeFromKubeconfig(file, name)
  return names
}

function ownerOf(entry: NamedCluster): unknown {
  return extensionOf(entry, OWNER)
}

function extensionOf({ cluster }: NamedCluster, wanted: string): unknown {
  return cluster?.extensions?.find(({ name }) => name === wanted)?.extension
}

/** Empty when there is none. Throws what the user should read. */
async function readKubeconfig(file: string): Promise<KubeconfigFile> {
  const text = await readIfThere(file)
  if (text === undefined || text.trim() === '') return {}
  let found: unknown
  try {
    found = parseYaml(text)
  } catch (cause) {
    throw notAKubeconfig(file, cause)
  }
  if (typeof found !== 'object' || found === null || Array.isArray(found)) throw notAKubeconfig(file)
  return found
}

function notAKubeconfig(file: string, cause?: unknown): Error {
  return new Error(`"${file}" is not a kubeconfig; move it away or choose another file with --kubeconfig`, { cause })
}

/** The same file with other words for the auth provider of a user; everything else stays. */
export function withAuthProvider(text: string, user: string, config: Readonly<Record<string, string>>): string {
  const before = parseYaml(text) as KubeconfigFile
  const users = (before.users ?? []).map((entry) => {
    if (entry.name !== user) return entry
    const { user: old = {} } = entry as Named & { user?: { readonly 'auth-provider'?: object } }
    return { ...entry, user: { ...old, 'auth-provider': { ...old['auth-provider'], config } } }
  })
  return stringifyYaml({ ...before, users })
}

/**
 * Takes the entry's cluster, user and context out again; a file that is not there has none. If the entry's context is current,
 * the one before it becomes current, or none where that is gone: kubectl then has no `current-context` at all.
 */
export async function removeFromKubeconfig(file: string, name: string): Promise<void> {
  const text = await readIfThere(file)
  if (text === undefined) return
  const { 'current-context': current, ...before } = parseYaml(text) as KubeconfigFile
  const rest = <T extends Named>(entries: readonly T[] = []): T[] => entries.filter((entry) => entry.name !== name)
  const previous = previousOf(before.clusters ?? [], name)
  const contexts = rest(before.contexts)
  const after = {
    ...before,
    clusters: rest(before.clusters).map((entry) => withoutPrevious(entry, name, previous)),
    users: rest(before.users),
    contexts,
    ...currentAfter(current === name ? previous : current, contexts, current === name),
  }
  const { mode } = await stat(file)
  await writeFileAtomically(file, stringifyYaml(after), { mode: mode & 0o777 })
}

function previousOf(clusters: readonly NamedCluster[], name: string): string | undefined {
  const entry = clusters.find((one) => one.name === name)
  const previous = entry && extensionOf(entry, PREVIOUS)
  return typeof previous === 'string' && previous !== name ? previous : undefined
}

/** Another user's choice stays as it is, even where it names no context. */
function currentAfter(
  name: string | undefined,
  contexts: readonly Named[],
  isReplaced: boolean,
): Pick<KubeconfigFile, 'current-context'> {
  const isUsable = name !== undefined && (!isReplaced || contexts.some((context) => context.name === name))
  return isUsable ? { 'current-context': name } : {}
}

/** The same entry; where `gone` was current before it, the context before that takes its place. */
function withoutPrevious(entry: NamedCluster, gone: string, previous: string | undefined): NamedCluster {
  if (extensionOf(entry, PREVIOUS) !== gone) return entry
  const extensions = (entry.cluster?.extensions ?? []).flatMap((one) => {
    if (one.name !== PREVIOUS) return [one]
    return previous === undefined ? [] : [{ ...one, extension: previous }]
  })
  return { ...entry, cluster: { ...entry.cluster, extensions } }
}

function merged(before: KubeconfigFile, entry: KubeconfigEntry): object {
  const { name, owner } = entry
  const put = (entries: readonly Named[] = [], added: Named): Named[] => [
    ...entries.filter((one) => one.name !== name),
    added,
  ]
  const current = before['current-context'] ?? ''
  const previous = current === name ? previousOf(before.clusters ?? [], name) : current
  const extensions = [
    ...(owner === undefined ? [] : [{ name: OWNER, extension: owner }]),
    ...(previous === undefined || previous === '' ? [] : [{ name: PREVIOUS, extension: previous }]),
  ]
  const cluster: ClusterEntry = {
    server: entry.server,
    'certificate-authority-data': base64(entry.certificateAuthority),
    ...(extensions.length > 0 && { extensions }),
  }
  const user = {
    'client-certificate-data': base64(entry.clientCertificate),
    'client-key-data': base64(entry.clientKey),
  }
  return {
    ...before,
    apiVersion: 'v1',
    kind: 'Config',
    preferences: before.preferences ?? {},
    clusters: put(before.clusters, { name, cluster } as Named),
    users: put(before.users, { name, user } as Named),
    contexts: put(before.contexts, { name, context: { cluster: name, user: name } } as Named),
    'current-context': name,
  }
}

function base64(pem: string): string {
  return Buffer.from(pem).toString('base64')
}

/** Undefined when there is none. A pipe, device or terminal has nothing to keep, and reading it might never end. */
async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return (await isWrittenInPlace(file)) ? undefined : await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
