/**
 * Parses the cluster file (cluster.yml) of a built cluster strictly, refuses values that name files of the server,
 * and separates its keys and passwords. Pure.
 */
import { createHash } from 'node:crypto'

import { isJsonObject } from '#lib/json/value.ts'
import { parseIp } from '#lib/net/cidr.ts'
import { parseYaml, stringifyYaml } from '#lib/yaml/yaml.ts'
import type { ClusterFile } from '#provision/cluster.ts'
import { type Fault, formatFault, readClusterFile } from '#provision/file/cluster-file.ts'

import type { ClusterBuild } from '../kinds/cluster.ts'

/** Values by path, such as `private_registries[0].password`. */
export type SecretFields = Readonly<Record<string, unknown>>

export interface BuildFileReading {
  /** Present if there are no faults. */
  readonly cluster?: ClusterFile
  /** The whole text, with keys and passwords. */
  readonly text: string
  readonly faults: readonly Fault[]
  readonly notices: readonly Fault[]
}

/** Reads the file together with its keys and passwords. Never throws. */
export function readBuildFile(build: ClusterBuild, secrets: SecretFields): BuildFileReading {
  const text = textOf(build, secrets)
  const { cluster, faults, notices } = readClusterFile(text)
  const refused = cluster === undefined ? [] : refusals(valueOf(text), cluster)
  const all = [...faults, ...refused]
  return { text, faults: all, notices, ...(cluster !== undefined && all.length === 0 && { cluster }) }
}

/** Without keys and passwords the text stays as it was written. */
function textOf({ file, config }: ClusterBuild, secrets: SecretFields): string {
  if (file !== undefined && Object.keys(secrets).length === 0) return file
  const value = file === undefined ? config : valueOf(file)
  return stringifyYaml(isJsonObject(value) ? withSecrets(value, secrets) : value)
}

function valueOf(text: string): unknown {
  try {
    return parseYaml(text)
  } catch {
    return undefined
  }
}

/** Identifies a file. */
export function fileDigest({ file, config, revision = '' }: ClusterBuild): string {
  const content = file ?? JSON.stringify(config)
  return createHash('sha256').update(`${revision}\n${content}`).digest('hex').slice(0, 16)
}

/** One line for each fault: `cluster.yml:3:3: nodes[0].adress: Unknown key …`. */
export function faultLines(faults: readonly Fault[]): readonly string[] {
  return faults.map((fault) => formatFault('cluster.yml', fault))
}

/** Keys of the operator's machine: here they would read files of the server, or use its agent. */
const OPERATOR_KEYS: Readonly<Record<string, string>> = {
  ssh_key_path: 'names a file of the server: the server has a key for each cluster, or set ssh_key',
  ssh_cert_path: 'names a file of the server: set ssh_cert',
  ssh_agent_auth: 'the server has no SSH agent: it has a key for each cluster, or set ssh_key',
  image_archives: 'names files of the server: import images on the machines, or use a registry',
  addons_include: 'names files of the server: put the manifests into addons',
}

function refusals(value: unknown, cluster: ClusterFile): readonly Fault[] {
  const given = isJsonObject(value) ? value : {}
  const lists = Array.isArray(given['nodes']) ? given['nodes'] : []
  const holders: readonly (readonly [path: string, value: unknown])[] = [
    ['', given],
    ['bastion_host.', given['bastion_host']],
    ...lists.map((node, at) => [`nodes[${at}].`, node] as const),
  ]
  const keys = holders.flatMap(([path, holder]) =>
    Object.entries(isJsonObject(holder) ? holder : {})
      .filter(([key, set]) => Object.hasOwn(OPERATOR_KEYS, key) && isSet(set))
      .map(([key]) => fault(`${path}${key}`, `${key} ${OPERATOR_KEYS[key]}`)),
  )
  const addresses = cluster.nodes.flatMap(({ address, internal_address: internal }, at) =>
    [address, internal]
      .filter(isOwnAddress)
      .map((one) => fault(`nodes[${at}].address`, `"${one}" is an address of the server itself`)),
  )
  return [...keys, ...addresses]
}

function isSet(value: unknown): boolean {
  return value !== null && value !== '' && value !== false && !(Array.isArray(value) && value.length === 0)
}

function fault(path: string, text: string): Fault {
  return { line: 1, column: 1, path, text }
}

/** Loopback, link-local (with the metadata service of clouds) and unspecified addresses. */
function isOwnAddress(text: string): boolean {
  if (text === 'localhost' || text.endsWith('.localhost')) return true
  if (parseIp(text) === undefined) return false
  return /^(?:127\.|169\.254\.|0\.|::1?$|::ffff:(?:127|169\.254|0)\.|fe[89ab])/i.test(text)
}

/** Members that have keys and passwords, wherever they are. */
const SECRET_KEYS: ReadonlySet<string> = new Set([
  'ssh_key',
  'password',
  'aws_secret_access_key',
  'aws_session_token',
  'secret_key',
  'custom_config',
  'awsCloudProvider',
  'azureCloudProvider',
  'openstackCloudProvider',
  'vsphereCloudProvider',
  'harvesterCloudProvider',
  'customCloudProvider',
  'extra_env',
  'extra_envs',
])

/** The client key for an external etcd has a name that other things have, too. */
const SECRET_PATHS: ReadonlySet<string> = new Set(['services.etcd.key'])
const SECRET_MANIFEST = /^\s*["']?kind["']?\s*:\s*["']?Secret\b/m

/** Takes keys and passwords out of the file. A text without any stays a text; another one becomes an object. */
export function divideFile(build: Pick<ClusterBuild, 'file' | 'config'>): {
  readonly build: Pick<ClusterBuild, 'file' | 'config'>
  readonly secrets: SecretFields
} {
  const value = build.file === undefined ? build.config : valueOf(build.file)
  if (!isJsonObject(value)) return { build, secrets: {} }
  const secrets: Record<string, unknown> = {}
  const config = divide(value, '', secrets) as Record<string, unknown>
  return Object.keys(secrets).length === 0 ? { build, secrets } : { build: { config }, secrets }
}

function divide(value: unknown, path: string, secrets: Record<string, unknown>): unknown {
  if (Array.isArray(value)) return value.map((item, at) => divide(item, `${path}[${at}]`, secrets))
  if (!isJsonObject(value)) return value
  const kept: [string, unknown][] = []
  for (const [key, member] of Object.entries(value)) {
    const at = path === '' ? key : `${path}.${key}`
    if (isSecret(key, at, member)) secrets[at] = member
    else kept.push([key, divide(member, at, secrets)])
  }
  return Object.fromEntries(kept)
}

function isSecret(key: string, path: string, value: unknown): boolean {
  if (!isSet(value)) return false
  if (path === 'addons') return typeof value === 'string' && SECRET_MANIFEST.test(value)
  return SECRET_KEYS.has(key) || SECRET_PATHS.has(path)
}

function withSecrets(value: unknown, secrets: SecretFields, path = ''): unknown {
  if (Array.isArray(value)) return value.map((item, at) => withSecrets(item, secrets, `${path}[${at}]`))
  if (!isJsonObject(value)) return value
  const own = Object.entries(value).map(([key, member]): [string, unknown] => [
    key,
    withSecrets(member, secrets, path === '' ? key : `${path}.${key}`),
  ])
  const here = Object.entries(secrets).filter(([at]) => at.slice(0, at.length - lastKey(at).length) === prefixOf(path))
  return { ...Object.fromEntries(own), ...Object.fromEntries(here.map(([at, secret]) => [lastKey(at), secret])) }
}

function prefixOf(path: string): string {
  return path === '' ? '' : `${path}.`
}

function lastKey(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1)
}
