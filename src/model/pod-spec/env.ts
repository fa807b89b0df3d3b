/** Environment variables of containers, and what they may be taken from. */
import type {
  ConfigMapKeySelector,
  EnvFromSource,
  EnvVar,
  EnvVarSource,
  FileKeySelector,
  ObjectFieldSelector,
  ResourceFieldSelector,
} from '#apis/core/v1.ts'
import { canonicalQuantity, isZeroQuantity, parseQuantity } from '#meta/quantity.ts'
import { child, type FieldError, index, invalid, notInSet, required } from '#meta/validation/field-error.ts'
import {
  configMapKey,
  dns1123Subdomain,
  envVarName,
  nameIsSubdomain,
  relaxedEnvVarName,
} from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'

import { requiredText, validateDnsLabel, validateNoBacksteps, validateQualifiedName } from './checks.ts'
import type { PodOptions } from './rules.ts'

export function validateEnv(field: string, env: readonly EnvVar[] = [], options: PodOptions): FieldError[] {
  return env.flatMap((variable, at) => {
    const path = index(field, at)
    const name = child(path, 'name')
    return [
      ...(variable.name === '' ? [required(name)] : validateVariableName(name, variable.name, options)),
      ...validateValueFrom(child(path, 'valueFrom'), variable, options),
    ]
  })
}

export function validateEnvFrom(
  field: string,
  sources: readonly EnvFromSource[] = [],
  options: PodOptions,
): FieldError[] {
  return sources.flatMap(({ prefix = '', configMapRef, secretRef }, at) => {
    const path = index(field, at)
    const errors = prefix === '' ? [] : validateVariableName(child(path, 'prefix'), prefix, options)
    for (const [name, source] of Object.entries({ configMapRef, secretRef })) {
      if (source !== undefined) errors.push(...validateSourceName(child(path, name, 'name'), source.name))
    }
    if (configMapRef === undefined && secretRef === undefined) {
      errors.push(invalid(field, '', 'must specify one of: `configMapRef` or `secretRef`'))
    } else if (configMapRef !== undefined && secretRef !== undefined) {
      errors.push(invalid(field, '', 'may not have more than one field specified at a time'))
    }
    return errors
  })
}

function validateVariableName(field: string, name: string, { relaxedEnvNames }: PodOptions): FieldError[] {
  return complaining(field, name, relaxedEnvNames ? relaxedEnvVarName(name) : envVarName(name))
}

/** Upstream judges these as prefixes of generated names. */
function validateSourceName(field: string, name = ''): FieldError[] {
  return name === '' ? [required(field)] : complaining(field, name, nameIsSubdomain(name, true))
}

const envFields = new Set([
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
])

type SourceRules = {
  readonly [K in keyof EnvVarSource]-?: (field: string, source: NonNullable<EnvVarSource[K]>) => FieldError[]
}

const sourceRules: SourceRules = {
  fieldRef: (field, source) => validateFieldRef(field, source, envFields),
  resourceFieldRef: (field, source) => validateResourceFieldRef(field, source, false),
  configMapKeyRef: validateKeyRef,
  secretKeyRef: validateKeyRef,
  fileKeyRef: validateFileKeyRef,
}

function validateValueFrom(field: string, { value = '', valueFrom }: EnvVar, options: PodOptions): FieldError[] {
  if (valueFrom === undefined) return []
  const errors: FieldError[] = []
  let sources = 0
  for (const name of Object.keys(sourceRules) as (keyof EnvVarSource)[]) {
    const source = valueFrom[name]
    if (source === undefined) continue
    sources++
    errors.push(...(sourceRules[name] as (field: string, source: unknown) => FieldError[])(child(field, name), source))
  }
  if (sources === 0) errors.push(invalid(field, '', `must specify one of: ${sourceNames(options)}`))
  else if (value !== '') errors.push(invalid(field, '', 'may not be specified when `value` is not empty'))
  else if (sources > 1) errors.push(invalid(field, '', 'may not have more than one field specified at a time'))
  return errors
}

function sourceNames({ envFiles }: PodOptions): string {
  return envFiles
    ? '`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`'
    : '`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`'
}

function validateKeyRef(field: string, { name = '', key }: ConfigMapKeySelector): FieldError[] {
  const path = child(field, 'key')
  return [
    ...complaining(child(field, 'name'), name, dns1123Subdomain(name)),
    ...(key === '' ? [required(path)] : complaining(path, key, configMapKey(key))),
  ]
}

function validateFileKeyRef(field: string, { key, volumeName, path }: FileKeySelector): FieldError[] {
  const at = { key: child(field, 'key'), volumeName: child(field, 'volumeName'), path: child(field, 'path') }
  return [
    ...(key === '' ? [required(at.key)] : complaining(at.key, key, relaxedEnvVarName(key))),
    ...(volumeName === '' ? [required(at.volumeName)] : validateDnsLabel(at.volumeName, volumeName)),
    ...(path === '' ? [required(at.path)] : validateNoBacksteps(at.path, path)),
  ]
}

/** What a pod can tell of itself, under the names that v1 has for it. */
const knownFields = new Set([
  ...envFields,
  'metadata.annotations',
  'metadata.labels',
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
])

/** A reference to a field of the pod itself; `allowed` depends on where the value goes. */
export function validateFieldRef(
  field: string,
  { apiVersion = '', fieldPath }: ObjectFieldSelector,
  allowed: ReadonlySet<string>,
): FieldError[] {
  if (apiVersion === '') return [required(child(field, 'apiVersion'))]
  const path = child(field, 'fieldPath')
  if (fieldPath === '') return [required(path)]
  const refused = (reason: string): FieldError[] => [invalid(path, fieldPath, `error converting fieldPath: ${reason}`)]
  if (apiVersion !== 'v1') return refused(`unsupported pod version: ${apiVersion}`)
  const subscript = splitSubscript(fieldPath)
  if (subscript !== undefined) {
    const [map, name] = subscript
    if (map === 'metadata.annotations') return validateQualifiedName(field, name.toLowerCase())
    if (map === 'metadata.labels') return validateQualifiedName(field, name)
    return refused(`field label does not support subscript: ${fieldPath}`)
  }
  const known = fieldPath === 'spec.host' ? 'spec.nodeName' : fieldPath
  if (!knownFields.has(known)) return refused(`field label not supported: ${fieldPath}`)
  return allowed.has(known) ? [] : [notInSet(path, known, allowed)]
}

/** `metadata.labels['a']` into its map and its key; undefined for a field without a subscript. */
export function splitSubscript(fieldPath: string): [map: string, name: string] | undefined {
  const open = fieldPath.indexOf("['")
  if (!fieldPath.endsWith("']") || open <= 0 || open + 2 > fieldPath.length - 2) return undefined
  return [fieldPath.slice(0, open), fieldPath.slice(open + 2, -2)]
}

const resourceFields = ['cpu', 'memory', 'ephemeral-storage'].flatMap((name) => [`limits.${name}`, `requests.${name}`])
const bytesDivisors = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei']

/** By resource: which divisors are fine, and how the resource is called when others are refused. */
const divisors = new Map([
  ['cpu', { allowed: ['1m', '1'], text: "only divisor's values 1m and 1 are supported with the cpu resource" }],
  ['memory', bytesRule('memory')],
  ['ephemeral-storage', bytesRule('local ephemeral storage')],
  ['hugepages', bytesRule('hugepages')],
])

function bytesRule(name: string): { readonly allowed: readonly string[]; readonly text: string } {
  const text = `only divisor's values ${bytesDivisors.join(', ')} are supported with the ${name} resource`
  return { allowed: bytesDivisors, text }
}

/** A reference to a request or limit of a container; in a volume it must say which. */
export function validateResourceFieldRef(
  field: string,
  { containerName = '', resource, divisor }: ResourceFieldSelector,
  inVolume: boolean,
): FieldError[] {
  const errors: FieldError[] = []
  if (inVolume && containerName === '') errors.push(required(child(field, 'containerName')))
  else if (resource === '') errors.push(...requiredText(child(field, 'resource'), resource))
  else if (!resourceFields.includes(resource) && !/^(?:requests|limits)\.hugepages-/.test(resource)) {
    errors.push(notInSet(child(field, 'resource'), resource, resourceFields))
  }
  return [...errors, ...validateDivisor(child(field, 'divisor'), resource, divisor)]
}

function validateDivisor(field: string, resource: string, divisor: string): FieldError[] {
  const name = /^(?:limits|requests)\.(cpu|memory|ephemeral-storage)$/.exec(resource)?.[1]
  const huge = /^(?:limits|requests)\.hugepages-/.test(resource) ? 'hugepages' : undefined
  const rule = divisors.get(name ?? huge ?? '')
  if (rule === undefined || isZeroQuantity(parseQuantity(divisor))) return []
  return rule.allowed.includes(canonicalQuantity(divisor)) ? [] : [invalid(field, resource, rule.text)]
}
