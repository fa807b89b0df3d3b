/**
 * Plans the status of a CustomResourceDefinition, step by step: API approval, accepted names, installing, established.
 * Pure: takes the definition and the names in use, and returns the next status.
 */
import type { CustomResourceDefinition, CustomResourceDefinitionStatus } from '#apis/apiextensions/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { runAtOnce } from '#lib/time-slicing.ts'
import { semanticEqual } from '#meta/object.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { structuralObstacle, validateStructural } from '#model/custom/structure-rules.ts'

import { type Condition, isTrue, withCondition } from './definition.ts'
import { planNames, type TakenNames } from './names.ts'

const APPROVAL = 'api-approved.kubernetes.io'
const LINK = 'https://github.com/kubernetes/enhancements/pull/1111'

/** The next status; undefined if nothing changes. */
export function planStatus(
  definition: CustomResourceDefinition,
  taken: TakenNames,
  nowMs: number,
): CustomResourceDefinitionStatus | undefined {
  const { status } = definition
  const { accepted, condition } = planNames(definition, taken)
  const structure = mayBeOdd(definition) ? oddityOf(definition) : undefined
  const named = [approvalOf(definition), condition, installing(definition, condition), structure]
  let conditions = (status.conditions ?? []).filter(({ type }) => type !== ODD || structure !== undefined)
  for (const one of named) if (one !== undefined) conditions = withCondition(conditions, one, nowMs)
  const first = { ...status, conditions, acceptedNames: accepted }
  if (!semanticEqual(first, status)) return first
  const established = establishing(definition)
  if (established === undefined) return undefined
  const second = { ...status, conditions: withCondition(conditions, established, nowMs) }
  return semanticEqual(second, status) ? undefined : second
}

const ODD = 'NonStructuralSchema'

/** Schemas written through the API are structural: those objects have an owner. Other objects may contain anything. */
function mayBeOdd({ metadata: { managedFields }, spec, status }: CustomResourceDefinition): boolean {
  if (spec.preserveUnknownFields === true) return true
  const { conditions } = status
  return (
    (conditions ?? []).some(({ type }) => type === ODD) ||
    ((conditions ?? []).length === 0 && managedFields === undefined)
  )
}

function oddityOf({ spec }: CustomResourceDefinition): Condition | undefined {
  const errors: FieldError[] =
    spec.preserveUnknownFields === true ? [fieldPath('spec.preserveUnknownFields').invalid(true, 'must be false')] : []
  for (const [at, { name, schema }] of spec.versions.entries()) {
    if (schema?.openAPIV3Schema === undefined) continue
    const obstacle = structuralObstacle(schema.openAPIV3Schema)
    if (obstacle !== undefined) {
      const message = `failed to check validation schema for version ${name}: ${obstacle}`
      return { type: ODD, status: 'Unknown', reason: 'StructuralError', message }
    }
    const path = fieldPath(`spec.versions[${at}].schema.openAPIV3Schema`)
    for (const error of runAtOnce(validateStructural(path, schema.openAPIV3Schema))) errors.push(error)
  }
  if (errors.length === 0) return undefined
  return { type: ODD, status: 'True', reason: 'Violations', message: aggregateText(errors) }
}

const ACCEPTED = 'the initial names have been accepted'

/** The state until it is established, for the first time or again. */
function installing(definition: CustomResourceDefinition, { status }: Condition): Condition | undefined {
  const type = 'Established'
  const before = definition.status.conditions?.find((one) => one.type === type)
  if (before?.status === 'True') return undefined
  if (status === 'True') {
    // The reason why it is not established stays until that changes.
    if (before?.reason === INVALID_BUNDLE.reason) return undefined
    return { type, status: 'False', reason: 'Installing', message: ACCEPTED }
  }
  if (before !== undefined && before.reason !== 'Installing') return undefined
  return { type, status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' }
}

const INVALID_BUNDLE: Condition = {
  type: 'Established',
  status: 'False',
  reason: 'InvalidCABundle',
  message: 'The conversion webhook CABundle is invalid',
}

function establishing(definition: CustomResourceDefinition): Condition | undefined {
  if (!isTrue(definition, 'NamesAccepted') || isTrue(definition, 'Established')) return undefined
  if (!hasSoundBundle(definition)) return INVALID_BUNDLE
  return { type: 'Established', status: 'True', reason: 'InitialNamesAccepted', message: ACCEPTED }
}

/** True if the conversion webhook has no CA bundle, or one that contains a certificate. */
export function hasSoundBundle({ spec }: CustomResourceDefinition): boolean {
  const { caBundle = '' } = spec.conversion?.webhook?.clientConfig ?? {}
  return caBundle === '' || Buffer.from(caBundle, 'base64').includes('-----BEGIN CERTIFICATE-----')
}

/** Groups of the Kubernetes project must name their API review. */
function approvalOf({ spec, metadata: { annotations = {} } }: CustomResourceDefinition): Condition | undefined {
  if (!/(?:^|\.)(?:k8s|kubernetes)\.io$/.test(spec.group)) return undefined
  const text = annotations[APPROVAL] ?? ''
  const type = 'KubernetesAPIApprovalPolicyConformant'
  const rule = `protected groups must have approval annotation ${goQuote(APPROVAL)}`
  if (text === '') {
    return { type, status: 'False', reason: 'MissingAnnotation', message: `${rule}, see ${LINK}` }
  }
  if (text.startsWith('unapproved')) {
    return { type, status: 'False', reason: 'UnapprovedAnnotation', message: `not approved: ${goQuote(text)}` }
  }
  if (/^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+/i.test(text)) {
    return { type, status: 'True', reason: 'ApprovedAnnotation', message: `approved in ${text}` }
  }
  const detail = `${rule} with either a URL or a reason starting with "unapproved", see ${LINK}`
  return { type, status: 'False', reason: 'InvalidAnnotation', message: detail }
}
