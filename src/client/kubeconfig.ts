/** Kubeconfig files: where clusters are and who we are to them. Other people's entries in a file are left alone. */
import { mkdir, readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import { parseYaml, stringifyYaml } from '#lib/yaml.ts'

interface Named {
  readonly name: string
}

interface KubeconfigFile {
  readonly apiVersion?: string
  readonly kind?: string
  readonly clusters?: readonly Named[]
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
}

/** A kubeconfig with nothing but this entry. */
export function kubeconfigText(entry: KubeconfigEntry): string {
  return stringifyYaml(merged({}, entry))
}

/** Puts the entry into the file, in place of one of its name, and makes it current. The file is for its owner only. */
export async function mergeKubeconfig(file: string, entry: KubeconfigEntry): Promise<void> {
  const text = await readIfThere(file)
  const before = text === undefined || text.trim() === '' ? {} : parseYaml(text)
  if (typeof before !== 'object' || before === null || Array.isArray(before)) {
    throw new Error(`"${file}" is not a kubeconfig; move it away or choose another file with --kubeconfig`)
  }
  await mkdir(dirname(file), { recursive: true })
  await writeFileAtomically(file, stringifyYaml(merged(before as KubeconfigFile, entry)), { mode: 0o600 })
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

/** Takes the entry's cluster, user and context out again; a file that is not there has none. */
export async function removeFromKubeconfig(file: string, name: string): Promise<void> {
  const text = await readIfThere(file)
  if (text === undefined) return
  const before = parseYaml(text) as KubeconfigFile
  const rest = (entries: readonly Named[] = []): Named[] => entries.filter((entry) => entry.name !== name)
  const current = before['current-context'] === name ? '' : before['current-context']
  const after = {
    ...before,
    clusters: rest(before.clusters),
    users: rest(before.users),
    contexts: rest(before.contexts),
    'current-context': current ?? '',
  }
  const { mode } = await stat(file)
  await writeFileAtomically(file, stringifyYaml(after), { mode: mode & 0o777 })
}

function merged(before: KubeconfigFile, entry: KubeconfigEntry): object {
  const { name } = entry
  const base64 = (pem: string): string => Buffer.from(pem).toString('base64')
  const put = (entries: readonly Named[] = [], added: Named): Named[] => [
    ...entries.filter((one) => one.name !== name),
    added,
  ]
  const cluster = { server: entry.server, 'certificate-authority-data': base64(entry.certificateAuthority) }
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

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
