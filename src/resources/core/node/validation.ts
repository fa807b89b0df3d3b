/** The rules of nodes. Paths are upstream's, which finds taints below `metadata`. */
import type { Node, NodeConfigSource, Taint } from '#apis/core/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { parseCidr } from '#lib/cidr.ts'
import { byteLength, compareText, goQuote } from '#lib/go-text.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json-value.ts'
import { parseJson } from '#lib/json.ts'
import { validateLegacyCidr } from '#meta/validation/addresses.ts'
import { child, duplicate, type FieldError, forbidden, index, invalid, required } from '#meta/validation/field-error.ts'
import { configMapKey, dns1123Label, dns1123Subdomain, labelValue } from '#meta/validation/names.ts'
import { complaining, validateLabelName } from '#meta/validation/rules.ts'
import { validatePositive } from '#model/pod-spec/checks.ts'
import { validateResourceQuantity } from '#model/pod-spec/resources.ts'
import { sortedAmounts } from '#model/resource-lists.ts'
import { validateTaintEffect } from '#model/taints.ts'

const TAINTS_ANNOTATION = 'scheduler.alpha.kubernetes.io/taints'
const AVOID_PODS_ANNOTATION = 'scheduler.alpha.kubernetes.io/preferAvoidPods'

export function validateNode(node: Node, context: RuleContext): FieldError[] {
  const { spec, status } = node
  const swap = status?.nodeInfo?.swap?.capacity
  return [
    ...validateNodeAnnotations(node),
    ...validateTaints('metadata.taints', spec?.taints),
    ...validateAmounts(node),
    ...(swap === undefined ? [] : validatePositive('metadata.nodeSwapStatus.capacity', swap)),
    ...validateDeclaredFeatures('status.declaredFeatures', status?.declaredFeatures),
    ...validatePodCidrs('spec.podCIDRs', spec?.podCIDRs, context.isEnabled('StrictIPCIDRValidation')),
  ]
}

/** What holds between two states, by the main resource and by `status`. */
export function validateNodeUpdate(next: Node, old: Node): FieldError[] {
  const { spec, status } = next
  const configs = (['assigned', 'active', 'lastKnownGood'] as const).flatMap((name) => {
    const source = status?.config?.[name]
    return source === undefined ? [] : validateConfigSource(child('status.config', name), source, 'status')
  })
  return [
    ...validateNodeAnnotations(next),
    ...validateAmounts(next),
    ...validateDeclaredFeatures('status.declaredFeatures', status?.declaredFeatures),
    ...validateAddresses(next),
    ...validateOnce(next, old),
    ...(spec?.configSource === undefined ? [] : validateConfigSource('spec.configSource', spec.configSource, 'spec')),
    ...configs,
    ...validateTaints('metadata.taints', spec?.taints),
    ...((spec?.externalID ?? '') === (old.spec?.externalID ?? '')
      ? []
      : [forbidden('spec.externalID', 'may not be updated')]),
  ]
}

/** What is set once, by whoever assigns it, and stays. */
function validateOnce({ spec }: Node, { spec: before }: Node): FieldError[] {
  const rule = (field: string): string => `node updates may not change ${field} except from "" to valid`
  const cidrs = spec?.podCIDRs ?? []
  const oldCidrs = before?.podCIDRs ?? []
  const differing =
    oldCidrs.length === cidrs.length
      ? oldCidrs.filter((cidr, at) => cidr !== cidrs[at]).length
      : Math.min(oldCidrs.length, 1)
  const errors = Array.from({ length: differing }, () => forbidden('spec.podCIDRs', rule('podCIDR')))
  const provider = before?.providerID ?? ''
  if (provider === '' || provider === (spec?.providerID ?? '')) return errors
  return [...errors, forbidden('spec.providerID', rule('providerID'))]
}

/** Taints out of an annotation may lack anything. */
function validateTaints(field: string, taints: readonly Partial<Taint>[] = []): FieldError[] {
  const seen = new Set<string>()
  return taints.flatMap((taint, at) => {
    const path = index(field, at)
    const { key = '', value = '', effect = '' } = taint
    const complaints = labelValue(value)
    const pair = `${effect}/${key}`
    const twice = seen.has(pair)
    seen.add(pair)
    return [
      ...validateLabelName(child(path, 'key'), key),
      ...(complaints.length === 0 ? [] : [invalid(child(path, 'value'), value, complaints.join(';'))]),
      ...validateTaintEffect(child(path, 'effect'), effect, false),
      ...(twice ? [{ ...duplicate(path, taint), detail: 'taints must be unique by key and effect pair' }] : []),
    ]
  })
}

/** What was in annotations before it had fields; still not to be wrong. */
function validateNodeAnnotations({ metadata }: Node): FieldError[] {
  const field = 'metadata.annotations'
  const taints = metadata.annotations?.[TAINTS_ANNOTATION] ?? ''
  const avoids = metadata.annotations?.[AVOID_PODS_ANNOTATION] ?? ''
  return [
    ...(taints === '' ? [] : validateTaintsAnnotation(field, taints)),
    ...(avoids === '' ? [] : validateAvoidPods(field, avoids)),
  ]
}

function validateTaintsAnnotation(field: string, text: string): FieldError[] {
  const taints = parsed(text)
  if (taints instanceof Error) return [invalid(field, TAINTS_ANNOTATION, taints.message)]
  if (taints !== null && (!Array.isArray(taints) || !taints.every(isTaint))) {
    return [invalid(field, TAINTS_ANNOTATION, 'must be a list of taints')]
  }
  return validateTaints(child(field, TAINTS_ANNOTATION), taints ?? [])
}

function isTaint(value: JsonValue): value is Record<'key' | 'value' | 'effect', string> & JsonObject {
  const isText = (field: JsonValue | undefined): boolean => field === undefined || typeof field === 'string'
  return isJsonObject(value) && ['key', 'value', 'effect'].every((name) => isText(value[name]))
}

function validateAvoidPods(field: string, text: string): FieldError[] {
  const avoids = parsed(text)
  if (avoids instanceof Error || (avoids !== null && !isJsonObject(avoids))) {
    const complaint = avoids instanceof Error ? avoids.message : 'must be an object'
    return [invalid(child(field, 'AvoidPods'), AVOID_PODS_ANNOTATION, complaint)]
  }
  const entries = avoids?.['preferAvoidPods']
  return (Array.isArray(entries) ? entries : []).flatMap((entry, at) =>
    validateAvoidEntry(child(index(child(field, AVOID_PODS_ANNOTATION), at), 'PodSignature'), entry),
  )
}

function validateAvoidEntry(path: string, entry: JsonValue): FieldError[] {
  const signature = isJsonObject(entry) ? entry['podSignature'] : undefined
  const controller = isJsonObject(signature) ? signature['podController'] : undefined
  if (!isJsonObject(controller)) return [required(path)]
  if (controller['controller'] === true) return []
  return [invalid(child(path, 'PodController', 'Controller'), false, 'must point to a controller')]
}

function parsed(text: string): JsonValue | Error {
  try {
    return parseJson(text)
  } catch (error) {
    return error as Error
  }
}

function validateAmounts({ status }: Node): FieldError[] {
  return (['capacity', 'allocatable'] as const).flatMap((list) =>
    sortedAmounts(status?.[list]).flatMap(([name, amount]) =>
      validateResourceQuantity(child('status', list, name), name, amount),
    ),
  )
}

const MAX_FEATURE_BYTES = 253
const featureForm = /^[A-Z][a-zA-Z0-9]*(\/[a-zA-Z][a-zA-Z0-9]*)*$/

function validateDeclaredFeatures(field: string, features: readonly string[] = []): FieldError[] {
  return features.flatMap((feature, at) => {
    const complaint = featureComplaint(feature)
    const next = features[at + 1]
    const errors = complaint === undefined ? [] : [invalid(index(field, at), feature, complaint)]
    if (next === undefined || compareText(feature, next) < 0) return errors
    const place = index(field, at + 1)
    return [
      ...errors,
      feature === next ? duplicate(place, next) : invalid(place, next, 'list must be sorted alphabetically'),
    ]
  })
}

function featureComplaint(feature: string): string | undefined {
  const head = `invalid feature name ${goQuote(feature)}`
  if (byteLength(feature) > MAX_FEATURE_BYTES) return `${head}: must be no more than ${MAX_FEATURE_BYTES} characters`
  if (featureForm.test(feature)) return undefined
  return `${head}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes`
}

function validateAddresses({ status }: Node): FieldError[] {
  const seen = new Set<string>()
  return (status?.addresses ?? []).flatMap((address, at) => {
    const pair = `${address.type}/${address.address}`
    const errors = seen.has(pair) ? [duplicate(index('status.addresses', at), address)] : []
    seen.add(pair)
    return errors
  })
}

function validatePodCidrs(field: string, cidrs: readonly string[] = [], strict: boolean): FieldError[] {
  const errors = cidrs.flatMap((cidr, at) => validateLegacyCidr(index(field, at), cidr, { strict }))
  if (cidrs.length < 2) return errors
  const families = new Set(cidrs.flatMap((cidr) => parseCidr(cidr, { sloppy: true })?.family ?? []))
  if (families.size === 2 && cidrs.length === 2) return errors
  return [...errors, invalid(field, cidrs, 'may specify no more than one CIDR for each IP family')]
}

/** A kubelet's configuration of old: the user names a ConfigMap, the kubelet tells which version of it it has. */
function validateConfigSource(path: string, source: NodeConfigSource, part: 'spec' | 'status'): FieldError[] {
  const { configMap } = source
  if (configMap === undefined) return [invalid(path, source, 'exactly one reference subfield must be non-nil')]
  const field = child(path, 'configMap')
  const versions = (['uid', 'resourceVersion'] as const).flatMap((name) => {
    const isSet = (configMap[name] ?? '') !== ''
    if (part === 'spec') return isSet ? [forbidden(child(field, name), `${name} must not be set in spec`)] : []
    return isSet ? [] : [required(child(field, name))]
  })
  const checks = [
    ['namespace', dns1123Label],
    ['name', dns1123Subdomain],
    ['kubeletConfigKey', configMapKey],
  ] as const
  return [
    ...versions,
    ...checks.flatMap(([name, check]) => {
      const text = configMap[name] ?? ''
      return text === '' ? [required(child(field, name))] : complaining(child(field, name), text, check(text))
    }),
  ]
}
