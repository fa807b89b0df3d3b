/**
 * Stores the private data of a built cluster in one Secret: SSH keys, state with certificates, host keys, and
 * passwords of the cluster file. The API server encrypts Secrets.
 */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, brotliDecompress, constants } from 'node:zlib'

import { Secrets } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { Random } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'
import type { StateStore } from '#provision/builder/session-options.ts'

import type { Cluster } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import { storeHash } from '../links/agent-routes.ts'
import { MANAGEMENT_NAMESPACE } from '../objects.ts'
import type { SecretFields } from './build-file.ts'
import { createSshKey } from './ssh-key.ts'

export interface BuildSecrets {
  readonly sshKey: string
  readonly sshPublicKey: string
  /** By which the agents of the cluster connect. */
  readonly credential: string
  /** The format of `known_hosts`. */
  readonly knownHosts: string
  /** Of the cluster file in the spec. */
  readonly fields: SecretFields
  /** The file that was last applied, or is being applied, with its passwords. */
  readonly file: string | undefined
  /** The Operation that wrote the state last. */
  readonly operation: string | undefined
  /** Undefined: nothing was done on any machine yet. */
  readonly state: string | undefined
}

interface SecretData {
  'ssh-key'?: string
  'ssh-public-key'?: string
  credential?: string
  known_hosts?: string
  fields?: string
  file?: string
  operation?: string
  state?: string
}

const COMPRESSED: ReadonlySet<string> = new Set(['state', 'file'])
const compress = promisify(brotliCompress)
const decompress = promisify(brotliDecompress)
/** The state repeats itself at a distance of hundreds of kilobytes. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: 24 } }
const CREDENTIAL_BYTES = 32

interface StoredData {
  readonly data: SecretData
  readonly isOwned: boolean
}

/** Undefined: there is none. */
export async function readSecrets(client: ApiClient, cluster: string): Promise<BuildSecrets | undefined> {
  const found = await readData(client, cluster)
  return found && secretsOf(found.data)
}

function secretsOf(data: SecretData): BuildSecrets {
  return {
    sshKey: data['ssh-key'] ?? '',
    sshPublicKey: data['ssh-public-key'] ?? '',
    knownHosts: data.known_hosts ?? '',
    credential: data.credential ?? '',
    fields: JSON.parse(data.fields ?? '{}') as SecretFields,
    file: data.file,
    operation: data.operation,
    state: data.state,
  }
}

async function readData(client: ApiClient, cluster: string): Promise<StoredData | undefined> {
  try {
    const found = await client.get(Secrets, { namespace: MANAGEMENT_NAMESPACE, name: secretName(cluster) })
    const texts = Object.entries(found.data ?? {}).map(async ([key, encoded]) => {
      const bytes = Buffer.from(encoded, 'base64')
      return [key, (COMPRESSED.has(key) ? await decompress(bytes) : bytes).toString()] as const
    })
    const isOwned = (found.metadata.ownerReferences ?? []).length > 0
    return { data: Object.fromEntries(await Promise.all(texts)), isOwned }
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

export interface NewSecrets {
  readonly random: Random
  /** The key that machines admit already; default: a new one. */
  readonly sshKey?: string
  readonly fields?: SecretFields
}

/** Called before the Cluster is created, because the controller needs them for it. */
export async function createSecrets(client: ApiClient, cluster: string, made: NewSecrets): Promise<void> {
  const { random, sshKey, fields = {} } = made
  const key =
    sshKey === undefined ? createSshKey(`hyperkube-${cluster}`, random) : { privateKey: sshKey, publicKey: '' }
  const data = await encoded({
    'ssh-key': key.privateKey,
    'ssh-public-key': key.publicKey,
    credential: random.bytes(CREDENTIAL_BYTES).toString('base64url'),
    fields: JSON.stringify(fields),
  })
  const metadata = { namespace: MANAGEMENT_NAMESPACE, name: secretName(cluster) }
  await client.create(Secrets, { metadata, type: 'Opaque', data }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })
}

/** The secrets of the cluster; makes those of a Cluster that kubectl created. From then on they go with the Cluster. */
export async function ensureSecrets(
  client: ApiClient,
  cluster: Cluster,
  { random }: Pick<NewSecrets, 'random'>,
): Promise<BuildSecrets> {
  const { name = '' } = cluster.metadata
  const found = await readData(client, name)
  if (found === undefined) {
    await createSecrets(client, name, { random })
    return ensureSecrets(client, cluster, { random })
  }
  const secrets = secretsOf(found.data)
  if (!found.isOwned) {
    await storeHash({ client }, cluster, createHash('sha256').update(secrets.credential).digest('hex'))
    const where = { namespace: MANAGEMENT_NAMESPACE, name: secretName(name) }
    const value = { metadata: { ownerReferences: [clusterOwner(cluster)] } }
    await client.patch(Secrets, where, { type: 'merge', value })
  }
  return secrets
}

export interface SecretChanges {
  readonly knownHosts?: string
  readonly fields?: SecretFields
  readonly sshKey?: string
}

export async function changeSecrets(
  client: ApiClient,
  cluster: string,
  { knownHosts, fields, sshKey }: SecretChanges,
): Promise<void> {
  await patch(client, cluster, {
    ...(knownHosts !== undefined && { known_hosts: knownHosts }),
    ...(fields !== undefined && { fields: JSON.stringify(fields) }),
    ...(sshKey !== undefined && { 'ssh-key': sshKey, 'ssh-public-key': '' }),
  })
}

/** The state, written together with the Operation and the file that it belongs to. */
export function stateStore(
  client: ApiClient,
  cluster: string,
  { operation, file }: { readonly operation: string; readonly file: string },
): StateStore {
  return {
    read: async () => (await readSecrets(client, cluster))?.state,
    write: (state) => patch(client, cluster, { state, operation, file }),
  }
}

async function patch(client: ApiClient, cluster: string, data: SecretData): Promise<void> {
  const where = { namespace: MANAGEMENT_NAMESPACE, name: secretName(cluster) }
  await client.patch(Secrets, where, { type: 'merge', value: { data: await encoded(data) } })
}

async function encoded(data: SecretData): Promise<Record<string, string>> {
  const all = Object.entries(data).map(async ([key, text]: [string, string]) => {
    const bytes = COMPRESSED.has(key) ? await compress(Buffer.from(text), BROTLI) : Buffer.from(text)
    return [key, bytes.toString('base64')] as const
  })
  return Object.fromEntries(await Promise.all(all))
}

/** Of a Cluster that could not be created, or that is removed. */
export async function deleteSecrets(client: ApiClient, cluster: string): Promise<void> {
  await client.delete(Secrets, { namespace: MANAGEMENT_NAMESPACE, name: secretName(cluster) })
}

function secretName(cluster: string): string {
  return `build-${cluster}`
}

/** Objects of the cluster go with it. */
export function clusterOwner({ metadata }: KubeObject): {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
} {
  const { name = '', uid = '' } = metadata
  return { apiVersion: `${GROUP}/v1`, kind: 'Cluster', name, uid }
}
