/** Validates environment variables of containers and their sources. */
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
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import {
  configMapKey,
  dns1123Subdomain,
  envVarName,
  nameIsSubdomain,
  relaxedEnvVarName,
} from '#meta/validation/names.ts'
import { requiredText, validateDnsLabel, validateQualifiedName } from '#meta/validation/rules.ts'

import { validateNoBacksteps } from '../checks.ts'
import type { PodOptions } from '../rules.ts'

export function validateEnv(path: FieldPath, env: readonly EnvVar[] = [], options: PodOptions): FieldError[] {
  return path.each(env, (path, variable) => {
    const name = path.child('name')
    return [
      ...(variable.name === '' ? [name.required()] : validateVariableName(name, variable.name, options)),
      ...validateValueFrom(path.child('valueFrom'), variable, options),
    ]
  })
}

export function validateEnvFrom(
  field: FieldPath,
  sources: readonly EnvFromSource[] = [],
  options: PodOptions,
): FieldError[] {
  return field.each(sources, (path, { prefix = '', configMapRef, secretRef }) => {
    const errors = prefix === '' ? [] : validateVariableName(path.child('prefix'), prefix, options)
    for (const [name, source] of Object.entries({ configMapRef, secretRef })) {
      if (source !== undefined) errors.push(...validateSourceName(path.child(name).child('name'), source.name))
    }
    if (configMapRef === undefined && secretRef === undefined) {
      errors.push(field.invalid('', 'must specify one of: `configMapRef` or `secretRef`'))
    } else if (configMapRef !== undefined && secretRef !== undefined) {
      errors.push(field.invalid('', 'may not have more than one field specified at a time'))
    }
    return errors
  })
}

function validateVariableName(path: FieldPath, name: string, { relaxedEnvNames }: PodOptions): FieldError[] {
  return path.check(name, () => (relaxedEnvNames ? relaxedEnvVarName(name) : envVarName(name)))
}

/** Upstream validates these as prefixes of generated names. */
function validateSourceName(path: FieldPath, name = ''): FieldError[] {
  return name === '' ? [path.required()] : path.check(name, () => nameIsSubdomain(name, true))
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
  readonly [K in keyof EnvVarSource]-?: (path: FieldPath, source: NonNullable<EnvVarSource[K]>) => FieldError[]
}

const sourceRules: SourceRules = {
  fieldRef: (field, source) => validateFieldRef(field, source, envFields),
  resourceFieldRef: (field, source) => validateResourceFieldRef(field, source, false),
  configMapKeyRef: validateKeyRef,
  secretKeyRef: validateKeyRef,
  fileKeyRef: validateFileKeyRef,
}

function validateValueFrom(path: FieldPath, { value = '', valueFrom }: EnvVar, options: PodOptions): FieldError[] {
  if (valueFrom === undefined) return []
  const errors: FieldError[] = []
  let sources = 0
  for (const name of Object.keys(sourceRules) as (keyof EnvVarSource)[]) {
    const source = valueFrom[name]
    if (source === undefined) continue
    sources++
    errors.push(...(sourceRules[name] as (path: FieldPath, source: unknown) => FieldError[])(path.child(name), source))
  }
  if (sources === 0) errors.push(path.invalid('', `must specify one of: ${sourceNames(options)}`))
  else if (value !== '') errors.push(path.invalid('', 'may not be specified when `value` is not empty'))
  else if (sources > 1) errors.push(path.invalid('', 'may not have more than one field specified at a time'))
  return errors
}

function sourceNames({ envFiles }: PodOptions): string {
  return envFiles
    ? '`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`'
    : '`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`'
}

function validateKeyRef(field: FieldPath, { name = '', key }: ConfigMapKeySelector): FieldError[] {
  const path = field.child('key')
  return [
    ...field.child('name').check(name, dns1123Subdomain),
    ...(key === '' ? [path.required()] : path.check(key, configMapKey)),
  ]
}

function validateFileKeyRef(field: FieldPath, { key, volumeName, path }: FileKeySelector): FieldError[] {
  const at = { key: field.child('key'), volumeName: field.child('volumeName'), path: field.child('path') }
  return [
    ...(key === '' ? [at.key.required()] : at.key.check(key, relaxedEnvVarName)),
    ...(volumeName === '' ? [at.volumeName.required()] : validateDnsLabel(at.volumeName, volumeName)),
    ...(path === '' ? [at.path.required()] : validateNoBacksteps(at.path, path)),
  ]
}

/** The pod fields available to containers, with their v1 names. */
const knownFields = new Set([
  ...envFields,
  'metadata.annotations',
  'metadata.labels',
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
])

/** A reference to a field of the pod; `allowed` depends on the use. */
export function validateFieldRef(
  field: FieldPath,
  { apiVersion = '', fieldPath }: ObjectFieldSelector,
  allowed: ReadonlySet<string>,
): FieldError[] {
  if (apiVersion === '') return [field.child('apiVersion').required()]
  const path = field.child('fieldPath')
  if (fieldPath === '') return [path.required()]
  const refused = (reason: string): FieldError[] => [path.invalid(fieldPath, `error converting fieldPath: ${reason}`)]
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
  return allowed.has(known) ? [] : [path.notInSet(known, allowed)]
}

/** Splits `metadata.labels['a']` into map and key; undefined without a subscript. */
export function splitSubscript(fieldPath: string): [map: string, name: string] | undefined {
  const open = fieldPath.indexOf("['")
  if (!fieldPath.endsWith("']") || open <= 0 || open + 2 > fieldPath.length - 2) return undefined
  return [fieldPath.slice(0, open), fieldPath.slice(open + 2, -2)]
}

const resourceFields = ['cpu', 'memory', 'ephemeral-storage'].flatMap((name) => [`limits.${name}`, `requests.${name}`])
const bytesDivisors = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei']

/** By resource: the valid divisors, and its name in errors. */
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

/** A reference to a request or limit of a container; in a volume it must name the container. */
export function validateResourceFieldRef(
  path: FieldPath,
  { containerName = '', resource, divisor }: ResourceFieldSelector,
  inVolume: boolean,
): FieldError[] {
  return collectErrors(
    inVolume && containerName === ''
      ? path.child('containerName').required()
      : resource === ''
        ? requiredText(path.child('resource'), resource)
        : !resourceFields.includes(resource) &&
          !/^(?:requests|limits)\.hugepages-/.test(resource) &&
          path.child('resource').notInSet(resource, resourceFields),
    validateDivisor(path.child('divisor'), resource, divisor),
  )
}

function validateDivisor(path: FieldPath, resource: string, divisor: string): FieldError[] {
  const name = /^(?:limits|requests)\.(cpu|memory|ephemeral-storage)$/.exec(resource)?.[1]
  const huge = /^(?:limits|requests)\.hugepages-/.test(resource) ? 'hugepages' : undefined
  const rule = divisors.get(name ?? huge ?? '')
  if (rule === undefined || isZeroQuantity(parseQuantity(divisor))) return []
  return rule.allowed.includes(canonicalQuantity(divisor)) ? [] : [path.invalid(resource, rule.text)]
}
