/** Reads and writes kubeconfig files. Entries of other owners stay unchanged. */
import { mkdir, readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

import { isWrittenInPlace, writeFileAtomically } from '#lib/files/atomic-file.ts'
import { parseYaml, stringifyYaml } from '#lib/yaml/yaml.ts'
import type { ClusterEntry } from '#model/kubeconfig/entries.ts'

import { waitForLock } from './kubeconfig-lock.ts'

interface NamedEntry {
  readonly name: string
}

interface NamedCluster extends NamedEntry {
  readonly cluster?: ClusterEntry
}

interface KubeconfigFile {
  readonly apiVersion?: string
  readonly kind?: string
  readonly clusters?: readonly NamedCluster[]
  readonly users?: readonly NamedEntry[]
  readonly contexts?: readonly NamedEntry[]
  readonly 'current-context'?: string
  readonly preferences?: object
}

/** One cluster with a user. Certificates and keys are PEM. */
export interface KubeconfigEntry {
  /** The name of the cluster, the user and the context. */
  readonly name: string
  readonly server: string
  readonly certificateAuthority: string
  readonly clientCertificate: string
  readonly clientKey: string
  /** The owner of the entry; an entry of another owner is never replaced. */
  readonly owner?: string
}

/** The extension with the owner of an entry; kubectl keeps unknown extensions. */
const OWNER = 'hyperkube.io/owner'
/** The current-context before this entry. It becomes current again when the entry is removed. */
const PREVIOUS = 'hyperkube.io/previous-context'

/** A kubeconfig with only this entry. */
export function kubeconfigText(entry: KubeconfigEntry): string {
  return stringifyYaml(merged({}, entry))
}

/** Adds or replaces the entry and makes it current. The file has mode 0600. */
export async function mergeKubeconfig(file: string, entry: KubeconfigEntry): Promise<void> {
  await using _lock = await lockIfFile(file)
  const before = await readKubeconfig(file)
  await mkdir(dirname(file), { recursive: true })
  await writeFileAtomically(file, stringifyYaml(merged(before, entry)), { mode: 0o600 })
}

/** A device or a pipe has no content that another program could change. */
async function lockIfFile(file: string): Promise<AsyncDisposable | null> {
  return (await isWrittenInPlace(file)) ? null : waitForLock(file)
}

/**
 * The first name that is free or already the owner's, by extension or certificate authority; undefined if all are
 * taken.
 */
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

/** Removes all entries of the owner; returns their names. */
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

/** Empty if the file does not exist. Throws errors for users. */
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

/** Replaces the auth provider configuration of a user; everything else stays. */
export function withAuthProvider(text: string, user: string, config: Readonly<Record<string, string>>): string {
  const before = parseYaml(text) as KubeconfigFile
  const users = (before.users ?? []).map((entry) => {
    if (entry.name !== user) return entry
    const { user: old = {} } = entry as NamedEntry & { user?: { readonly 'auth-provider'?: object } }
    return { ...entry, user: { ...old, 'auth-provider': { ...old['auth-provider'], config } } }
  })
  return stringifyYaml({ ...before, users })
}

/**
 * Removes the entry's cluster, user and context; does nothing without a file. If its context is current, the previous
 * one becomes current if it still exists; otherwise `current-context` is removed.
 */
export async function removeFromKubeconfig(file: string, name: string): Promise<void> {
  if ((await readIfThere(file)) === undefined) return
  await using _lock = await lockIfFile(file)
  const text = (await readIfThere(file)) ?? ''
  const { 'current-context': current, ...before } = (parseYaml(text) ?? {}) as KubeconfigFile
  const rest = <T extends NamedEntry>(entries: readonly T[] = []): T[] => entries.filter((entry) => entry.name !== name)
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

/** Keeps a current-context that someone else chose, even if that context does not exist. */
function currentAfter(
  name: string | undefined,
  contexts: readonly NamedEntry[],
  isReplaced: boolean,
): Pick<KubeconfigFile, 'current-context'> {
  const isUsable = name !== undefined && (!isReplaced || contexts.some((context) => context.name === name))
  return isUsable ? { 'current-context': name } : {}
}

/** If `gone` was this entry's previous context, replaces it with the one before that. */
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
  const put = (entries: readonly NamedEntry[] = [], added: NamedEntry): NamedEntry[] => [
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
    clusters: put(before.clusters, { name, cluster } as NamedEntry),
    users: put(before.users, { name, user } as NamedEntry),
    contexts: put(before.contexts, { name, context: { cluster: name, user: name } } as NamedEntry),
    'current-context': name,
  }
}

function base64(pem: string): string {
  return Buffer.from(pem).toString('base64')
}

/** Undefined if there is no regular file: reading a pipe, device or terminal might never end. */
async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return (await isWrittenInPlace(file)) ? undefined : await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
