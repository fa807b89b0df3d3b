/** Resolves the environment variables of a container from ConfigMaps, Secrets, files, pod fields and Services. */
import type { ConfigMap, Container, EnvVar, EphemeralContainer, Pod, Secret, Service } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import type { ResourceList } from '#model/resource-lists.ts'
import { HEADLESS } from '#model/services.ts'

import { containerNamed, defaultLimits, fieldText, type PodAddresses, resourceText } from '../pod/downward.ts'

/** Undefined when the object does not exist. */
export interface EnvironmentSources {
  configMap(name: string): Promise<ConfigMap | undefined>
  secret(name: string): Promise<Secret | undefined>
  /** The content of a file in a volume. */
  file(volume: string, path: string): Promise<string>
}

export interface EnvironmentInput {
  readonly pod: Pod
  readonly container: Container | EphemeralContainer
  readonly addresses: PodAddresses
  readonly services: readonly Service[]
  readonly allocatable: ResourceList
  readonly sources: EnvironmentSources
}

/** In order of declaration, Services last. Throws the message of CreateContainerConfigError. */
export async function environmentOf(input: EnvironmentInput): Promise<Map<string, string>> {
  const { pod, container, services } = input
  const links = serviceLinks(pod, services)
  const values = new Map<string, string>()
  for (const from of container.envFrom ?? []) {
    for (const [key, value] of await bulkOf(input, from)) values.set(`${from.prefix ?? ''}${key}`, value)
  }
  for (const variable of container.env ?? []) {
    const { value = '' } = variable
    const known = (name: string): string | undefined => values.get(name) ?? links.get(name)
    const found = value === '' ? await valueOf(input, variable) : expand(value, known)
    if (found !== undefined) values.set(variable.name, found)
  }
  for (const [name, value] of links) if (!values.has(name)) values.set(name, value)
  return values
}

type EnvFrom = NonNullable<Container['envFrom']>[number]

async function bulkOf(input: EnvironmentInput, from: EnvFrom): Promise<[string, string][]> {
  const { configMapRef, secretRef } = from
  if (configMapRef !== undefined) return Object.entries((await configMapOf(input, configMapRef))?.data ?? {})
  if (secretRef === undefined) return []
  const { data = {} } = (await secretOf(input, secretRef)) ?? {}
  return Object.entries(data).map(([key, value]) => [key, decoded(value)])
}

const decoded = (base64: string): string => Buffer.from(base64, 'base64').toString()

interface OptionalReference {
  readonly name?: string
  readonly optional?: boolean
}

async function configMapOf(
  { sources }: EnvironmentInput,
  reference: OptionalReference,
): Promise<ConfigMap | undefined> {
  const { name = '', optional = false } = reference
  const found = await sources.configMap(name)
  if (found === undefined && !optional) throw new Error(`configmap ${goQuote(name)} not found`)
  return found
}

async function secretOf({ sources }: EnvironmentInput, reference: OptionalReference): Promise<Secret | undefined> {
  const { name = '', optional = false } = reference
  const found = await sources.secret(name)
  if (found === undefined && !optional) throw new Error(`secret ${goQuote(name)} not found`)
  return found
}

/** Undefined when an optional reference is missing. */
async function valueOf(input: EnvironmentInput, { valueFrom }: EnvVar): Promise<string | undefined> {
  const { pod, container, addresses, allocatable } = input
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = valueFrom ?? {}
  if (fieldRef !== undefined) return fieldText(pod, fieldRef.fieldPath, addresses)
  if (resourceFieldRef !== undefined) {
    const named = containerNamed(pod, resourceFieldRef.containerName ?? '', container)
    return resourceText(named, resourceFieldRef, defaultLimits(pod, allocatable))
  }
  if (configMapKeyRef !== undefined) {
    const found = await configMapOf(input, configMapKeyRef)
    return pickKey(found, found?.data?.[configMapKeyRef.key], { ...configMapKeyRef, kind: 'ConfigMap' }, pod)
  }
  if (secretKeyRef !== undefined) {
    const found = await secretOf(input, secretKeyRef)
    const value = found?.data?.[secretKeyRef.key]
    const text = value === undefined ? undefined : decoded(value)
    return pickKey(found, text, { ...secretKeyRef, kind: 'Secret' }, pod)
  }
  return fileKeyRef === undefined ? '' : fromFile(input, fileKeyRef)
}

function pickKey(
  found: object | undefined,
  value: string | undefined,
  { key, name = '', optional = false, kind }: OptionalReference & { readonly key: string; readonly kind: string },
  { metadata: { namespace = '' } }: Pod,
): string | undefined {
  if (found === undefined || value !== undefined || optional) return value
  throw new Error(`couldn't find key ${key} in ${kind} ${namespace}/${name}`)
}

interface FileKey {
  readonly volumeName: string
  readonly path: string
  readonly key: string
  readonly optional?: boolean
}

async function fromFile({ sources }: EnvironmentInput, file: FileKey): Promise<string | undefined> {
  const { volumeName, path, key, optional = false } = file
  const text = await sources.file(volumeName, path).catch((cause: unknown) => {
    throw new Error("couldn't parse env file", { cause })
  })
  const value = parseEnvFile(text).get(key) ?? ''
  if (value !== '') return value
  if (optional) return undefined
  throw new Error(`environment variable key ${goQuote(key)} not found in file ${goQuote(path)}`)
}

/** One `KEY='value'` per line, without expansion. */
function parseEnvFile(text: string): Map<string, string> {
  const pairs = text.split('\n').flatMap((line): [string, string][] => {
    const [, key = '', value = ''] = /^\s*([A-Za-z_][\w.-]*)=(.*)$/.exec(line) ?? []
    return key === '' ? [] : [[key, value.trim().replace(/^'(.*)'$/, '$1')]]
  })
  return new Map(pairs)
}

/** `$(NAME)` expands to the variable, `$$` to a dollar sign; unknown names are unchanged. */
export function expand(text: string, known: (name: string) => string | undefined): string {
  return text.replaceAll(/\$(\$|\(([^)]*)\))/g, (whole, rest: string, name: string) =>
    rest === '$' ? '$' : (known(name) ?? whole),
  )
}

/** Variables of the API Service and, unless enableServiceLinks is false, of Services in the pod's namespace. */
export function serviceLinks(pod: Pod, services: readonly Service[]): Map<string, string> {
  const { namespace = '' } = pod.metadata
  const links = new Map<string, string>()
  for (const service of services) {
    const { metadata, spec } = service
    const isApi = metadata.namespace === 'default' && metadata.name === 'kubernetes'
    const isNear = metadata.namespace === namespace && pod.spec.enableServiceLinks !== false
    const { clusterIP = '', ports = [] } = spec
    if ((!isApi && !isNear) || clusterIP === '' || clusterIP === HEADLESS || ports.length === 0) continue
    for (const [name, value] of linksOf(service, clusterIP)) links.set(name, value)
  }
  return links
}

const shout = (name: string): string => name.toUpperCase().replaceAll('-', '_')

function linksOf({ metadata: { name = '' }, spec: { ports = [] } }: Service, ip: string): [string, string][] {
  const prefix = shout(name)
  const host = ip.includes(':') ? `[${ip}]` : ip
  const urlOf = (port: number, protocol: string): string => `${protocol.toLowerCase()}://${host}:${port}`
  const [first] = ports
  if (first === undefined) return []
  return [
    [`${prefix}_SERVICE_HOST`, ip],
    [`${prefix}_SERVICE_PORT`, String(first.port)],
    ...ports.flatMap((port): [string, string][] =>
      port.name === undefined ? [] : [[`${prefix}_SERVICE_PORT_${shout(port.name)}`, String(port.port)]],
    ),
    [`${prefix}_PORT`, urlOf(first.port, first.protocol ?? 'TCP')],
    ...ports.flatMap(({ port, protocol = 'TCP' }): [string, string][] => {
      const each = `${prefix}_PORT_${port}_${protocol.toUpperCase()}`
      return [
        [each, urlOf(port, protocol)],
        [`${each}_PROTO`, protocol.toLowerCase()],
        [`${each}_PORT`, String(port)],
        [`${each}_ADDR`, ip],
      ]
    }),
  ]
}
