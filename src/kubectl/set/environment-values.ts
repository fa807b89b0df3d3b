/** `set env --list --resolve`: looks up references to secrets, config maps and fields. */
import type { ConfigMap, Container, EnvVarSource, PodSpec, Secret } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { parseQuantity, quantityMilliValue } from '#meta/quantity.ts'
import { qualifiedName } from '#meta/validation/names.ts'

import { KubectlError } from '../errors.ts'
import { resourcePath } from '../related-objects.ts'
import type { AnyObject, Rest } from '../session/rest.ts'

interface ResolveContext {
  readonly rest: Rest
  readonly namespace: string
  readonly object: AnyObject
  readonly container: Container
  readonly spec: PodSpec
}

/** Throws KubectlError or StatusError. */
export async function valueOf(source: EnvVarSource, around: ResolveContext): Promise<string> {
  const { secretKeyRef, configMapKeyRef, fieldRef, resourceFieldRef } = source
  const { rest, namespace } = around
  if (secretKeyRef !== undefined) {
    const { name = '', key } = secretKeyRef
    const { data = {} } = await rest.json<Secret & JsonObject>(resourcePath('v1/secrets', namespace, name))
    const found = data[key]
    if (found === undefined) throw new KubectlError(`key ${key} not found in secret ${name}`)
    return Buffer.from(found, 'base64').toString()
  }
  if (configMapKeyRef !== undefined) {
    const { name = '', key } = configMapKeyRef
    const { data = {} } = await rest.json<ConfigMap & JsonObject>(resourcePath('v1/configmaps', namespace, name))
    const found = data[key]
    if (found === undefined) throw new KubectlError(`key ${key} not found in config map ${name}`)
    return found
  }
  if (fieldRef !== undefined) return fieldValue(around.object, fieldRef.fieldPath)
  if (resourceFieldRef !== undefined) return resourceValue(around, resourceFieldRef)
  throw new KubectlError('invalid valueFrom')
}

/** Reads a metadata field; other fields have no value before a pod runs. */
function fieldValue({ metadata }: AnyObject, path: string): string {
  const [, map = '', key = ''] = /^(.*)\['(.*)'\]$/s.exec(path) ?? []
  if (map !== '') return entryOf(metadata, { path, map, key })
  const { annotations, labels, name = '', namespace = '', uid = '' } = metadata
  const known: Readonly<Record<string, string>> = {
    'metadata.annotations': linesOf(annotations),
    'metadata.labels': linesOf(labels),
    'metadata.name': name,
    'metadata.namespace': namespace,
    'metadata.uid': uid,
  }
  const found = known[path]
  if (found === undefined) throw new KubectlError(`unsupported fieldPath: ${path}`)
  return found
}

function linesOf(pairs: Readonly<Record<string, string>> = {}): string {
  const names = Object.keys(pairs).sort()
  return names.map((name) => `${name}=${goQuote(pairs[name] ?? '')}`).join('\n')
}

function entryOf(
  { annotations = {}, labels = {} }: AnyObject['metadata'],
  { path, map, key }: { readonly path: string; readonly map: string; readonly key: string },
): string {
  if (map !== 'metadata.annotations' && map !== 'metadata.labels') {
    throw new KubectlError(`fieldPath ${goQuote(map)} does not support subscript`)
  }
  const isLabel = map === 'metadata.labels'
  const problems = qualifiedName(isLabel ? key : key.toLowerCase())
  if (problems.length > 0) throw new KubectlError(`invalid key subscript in ${path}: ${problems.join(';')}`)
  return (isLabel ? labels : annotations)[key] ?? ''
}

function resourceValue(
  { container, spec }: ResolveContext,
  { containerName = '', resource, divisor }: NonNullable<EnvVarSource['resourceFieldRef']>,
): string {
  const of = containerName === '' ? container : spec.containers.find(({ name }) => name === containerName)
  if (of === undefined) throw new KubectlError(`container ${containerName} not found`)
  const [, field = '', name = ''] =
    /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.*)$/.exec(resource) ?? []
  if (field === '') throw new KubectlError(`Unsupported container resource : ${resource}`)
  const amount = of.resources?.[field as 'limits' | 'requests']?.[name] ?? '0'
  const unit = quantityMilliValue(parseQuantity(divisor === undefined || divisor === '0' ? '1' : divisor))
  return String(Math.ceil(quantityMilliValue(parseQuantity(amount)) / unit))
}
