/** Validates nodes. Field paths are upstream's, which has taints below `metadata`. */
import type { Node, NodeConfigSource, Taint } from '#apis/core/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { byteLength, compareText, goQuote } from '#lib/go/text.ts'
import { parseJson } from '#lib/json/json.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { parseCidr } from '#lib/net/cidr.ts'
import { createRepetition } from '#lib/repetition.ts'
import { validateLegacyCidr } from '#meta/validation/addresses.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { configMapKey, dns1123Label, dns1123Subdomain, labelValue } from '#meta/validation/names.ts'
import { validateLabelName, validatePositive } from '#meta/validation/rules.ts'
import { validateTaintEffect } from '#model/nodes/taints.ts'
import { validateResourceQuantity } from '#model/pod-spec/containers/resources.ts'
import { sortedAmounts } from '#model/resource-lists.ts'

const TAINTS_ANNOTATION = 'scheduler.alpha.kubernetes.io/taints'
const AVOID_PODS_ANNOTATION = 'scheduler.alpha.kubernetes.io/preferAvoidPods'

export function validateNode(node: Node, context: RuleContext): FieldError[] {
  const { spec, status } = node
  const swap = status?.nodeInfo?.swap?.capacity
  return collectErrors(
    validateNodeAnnotations(node),
    validateTaints(fieldPath('metadata.taints'), spec?.taints),
    validateAmounts(node),
    swap !== undefined && validatePositive(fieldPath('metadata.nodeSwapStatus.capacity'), swap),
    validateDeclaredFeatures(fieldPath('status.declaredFeatures'), status?.declaredFeatures),
    validatePodCidrs(fieldPath('spec.podCIDRs'), spec?.podCIDRs, context.isEnabled('StrictIPCIDRValidation')),
  )
}

/** The update rules of the main resource and of `status`. */
export function validateNodeUpdate(next: Node, old: Node): FieldError[] {
  const { spec, status } = next
  const configs = (['assigned', 'active', 'lastKnownGood'] as const).flatMap((name) => {
    const source = status?.config?.[name]
    return source === undefined ? [] : validateConfigSource(fieldPath('status.config').child(name), source, 'status')
  })
  return collectErrors(
    validateNodeAnnotations(next),
    validateAmounts(next),
    validateDeclaredFeatures(fieldPath('status.declaredFeatures'), status?.declaredFeatures),
    validateAddresses(next),
    validateOnce(next, old),
    spec?.configSource !== undefined && validateConfigSource(fieldPath('spec.configSource'), spec.configSource, 'spec'),
    configs,
    validateTaints(fieldPath('metadata.taints'), spec?.taints),
    (spec?.externalID ?? '') !== (old.spec?.externalID ?? '') &&
      fieldPath('spec.externalID').forbidden('may not be updated'),
  )
}

/** Fields that are assigned once. */
function validateOnce({ spec }: Node, { spec: before }: Node): FieldError[] {
  const rule = (field: string): string => `node updates may not change ${field} except from "" to valid`
  const cidrs = spec?.podCIDRs ?? []
  const oldCidrs = before?.podCIDRs ?? []
  const differing =
    oldCidrs.length === cidrs.length
      ? oldCidrs.filter((cidr, at) => cidr !== cidrs[at]).length
      : Math.min(oldCidrs.length, 1)
  const errors = Array.from({ length: differing }, () => fieldPath('spec.podCIDRs').forbidden(rule('podCIDR')))
  const provider = before?.providerID ?? ''
  if (provider === '' || provider === (spec?.providerID ?? '')) return errors
  return [...errors, fieldPath('spec.providerID').forbidden(rule('providerID'))]
}

/** Taints in an annotation may lack any field. */
function validateTaints(path: FieldPath, taints: readonly Partial<Taint>[] = []): FieldError[] {
  const isRepeated = createRepetition()
  return path.each(taints, (path, taint) => {
    const { key = '', value = '', effect = '' } = taint
    const complaints = labelValue(value)
    const pair = `${effect}/${key}`
    const twice = isRepeated(pair)
    return collectErrors(
      validateLabelName(path.child('key'), key),
      complaints.length !== 0 && path.child('value').invalid(value, complaints.join(';')),
      validateTaintEffect(path.child('effect'), effect, false),
      twice && { ...path.duplicate(taint), detail: 'taints must be unique by key and effect pair' },
    )
  })
}

/** Annotations that preceded fields; still validated. */
function validateNodeAnnotations({ metadata }: Node): FieldError[] {
  const field = fieldPath('metadata.annotations')
  const taints = metadata.annotations?.[TAINTS_ANNOTATION] ?? ''
  const avoids = metadata.annotations?.[AVOID_PODS_ANNOTATION] ?? ''
  return collectErrors(
    taints !== '' && validateTaintsAnnotation(field, taints),
    avoids !== '' && validateAvoidPods(field, avoids),
  )
}

function validateTaintsAnnotation(path: FieldPath, text: string): FieldError[] {
  const taints = parsed(text)
  if (taints instanceof Error) return [path.invalid(TAINTS_ANNOTATION, taints.message)]
  if (taints !== null && (!Array.isArray(taints) || !taints.every(isTaint))) {
    return [path.invalid(TAINTS_ANNOTATION, 'must be a list of taints')]
  }
  return validateTaints(path.child(TAINTS_ANNOTATION), taints ?? [])
}

function isTaint(value: JsonValue): value is Record<'key' | 'value' | 'effect', string> & JsonObject {
  const isText = (field: JsonValue | undefined): boolean => field === undefined || typeof field === 'string'
  return isJsonObject(value) && ['key', 'value', 'effect'].every((name) => isText(value[name]))
}

function validateAvoidPods(path: FieldPath, text: string): FieldError[] {
  const avoids = parsed(text)
  if (avoids instanceof Error || (avoids !== null && !isJsonObject(avoids))) {
    const complaint = avoids instanceof Error ? avoids.message : 'must be an object'
    return [path.child('AvoidPods').invalid(AVOID_PODS_ANNOTATION, complaint)]
  }
  const entries = avoids?.['preferAvoidPods']
  return path
    .child(AVOID_PODS_ANNOTATION)
    .each(Array.isArray(entries) ? entries : [], (path, entry) => validateAvoidEntry(path.child('PodSignature'), entry))
}

function validateAvoidEntry(path: FieldPath, entry: JsonValue): FieldError[] {
  const signature = isJsonObject(entry) ? entry['podSignature'] : undefined
  const controller = isJsonObject(signature) ? signature['podController'] : undefined
  if (!isJsonObject(controller)) return [path.required()]
  if (controller['controller'] === true) return []
  return [path.child('PodController.Controller').invalid(false, 'must point to a controller')]
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
      validateResourceQuantity(fieldPath('status').child(list).child(name), name, amount),
    ),
  )
}

const MAX_FEATURE_BYTES = 253
const featureForm = /^[A-Z][a-zA-Z0-9]*(\/[a-zA-Z][a-zA-Z0-9]*)*$/

function validateDeclaredFeatures(path: FieldPath, features: readonly string[] = []): FieldError[] {
  return features.flatMap((feature, at) => {
    const complaint = featureComplaint(feature)
    const next = features[at + 1]
    const errors = complaint === undefined ? [] : [path.index(at).invalid(feature, complaint)]
    if (next === undefined || compareText(feature, next) < 0) return errors
    const itemPath = path.index(at + 1)
    return [
      ...errors,
      feature === next ? itemPath.duplicate(next) : itemPath.invalid(next, 'list must be sorted alphabetically'),
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
  const isRepeated = createRepetition()
  return fieldPath('status.addresses').each(status?.addresses, (path, address) => {
    const pair = `${address.type}/${address.address}`
    const errors = isRepeated(pair) ? [path.duplicate(address)] : []
    return errors
  })
}

function validatePodCidrs(path: FieldPath, cidrs: readonly string[] = [], strict: boolean): FieldError[] {
  const errors = path.each(cidrs, (path, cidr) => validateLegacyCidr(path, cidr, { strict }))
  if (cidrs.length < 2) return errors
  const families = new Set(cidrs.flatMap((cidr) => parseCidr(cidr, { sloppy: true })?.family ?? []))
  if (families.size === 2 && cidrs.length === 2) return errors
  return [...errors, path.invalid(cidrs, 'may specify no more than one CIDR for each IP family')]
}

/** The old dynamic kubelet configuration: a ConfigMap in the spec, and the active version in the status. */
function validateConfigSource(path: FieldPath, source: NodeConfigSource, part: 'spec' | 'status'): FieldError[] {
  const { configMap } = source
  if (configMap === undefined) return [path.invalid(source, 'exactly one reference subfield must be non-nil')]
  const field = path.child('configMap')
  const versions = (['uid', 'resourceVersion'] as const).flatMap((name) => {
    const isSet = (configMap[name] ?? '') !== ''
    if (part === 'spec') return isSet ? [field.child(name).forbidden(`${name} must not be set in spec`)] : []
    return isSet ? [] : [field.child(name).required()]
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
      return text === '' ? [field.child(name).required()] : field.child(name).check(text, check)
    }),
  ]
}
