/** What the access reviews share: their question as an access, its rules, and the verdict as a status. */
import type {
  FieldSelectorAttributes,
  LabelSelectorAttributes,
  NonResourceAttributes,
  ResourceAttributes,
  SubjectAccessReviewSpec,
  SubjectAccessReviewStatus,
} from '#apis/authorization/v1.ts'
import type { FieldSelectorRequirement } from '#apis/meta/v1.ts'
import { type Access, pathAccess, resourceAccess, type Verdict } from '#apiserver/authorizers/authorizer.ts'
import type { User } from '#apiserver/registry/resource.ts'
import { fieldSelectorText, parseFieldSelector } from '#meta/fields.ts'
import { asSelector, type LabelSelectorRequirement, validateLabelSelectorRequirement } from '#meta/label-selector.ts'
import { parseSelector, selectorText } from '#meta/labels.ts'
import type { KubeObject } from '#meta/object.ts'
import { child, type FieldError, forbidden, index, invalid, required } from '#meta/validation/field-error.ts'

/** An access, and what of its selectors could not be understood. */
export interface Question {
  readonly access: Access
  readonly ignored: readonly string[]
}

interface Asked {
  readonly resourceAttributes?: ResourceAttributes
  readonly nonResourceAttributes?: NonResourceAttributes
}

export function questionFrom({ resourceAttributes, nonResourceAttributes }: Asked): Question {
  if (resourceAttributes === undefined) {
    const { verb = '', path = '' } = nonResourceAttributes ?? {}
    return { access: pathAccess(verb, path), ignored: [] }
  }
  const { verb = '', resource = '', version = '', fieldSelector, labelSelector, ...rest } = resourceAttributes
  const fields = readFields(fieldSelector)
  const labels = readLabels(labelSelector)
  const parts = { ...rest, version: version === '' ? '*' : version }
  const selectors = { fieldSelector: fields.text, labelSelector: labels.text }
  return {
    access: resourceAccess({ verb, resource, ...parts, ...selectors }),
    ignored: [...ignoredText('fieldSelector', fields), ...ignoredText('labelSelector', labels)],
  }
}

export function userFrom({ user = '', uid = '', groups = [], extra = {} }: SubjectAccessReviewSpec): User {
  return { name: user, uid, groups, extra }
}

export function statusFrom(
  { allowed, denied, reason, error }: Verdict,
  { ignored }: Question,
): SubjectAccessReviewStatus {
  const errors = [...(error === undefined ? [] : [error]), ...ignored]
  return {
    allowed,
    ...(denied ? { denied } : {}),
    ...(reason === '' ? {} : { reason }),
    ...(errors.length === 0 ? {} : { evaluationError: errors.join('; ') }),
  }
}

/** What was understood, as text; requirements are all to hold, so leaving one out asks for more, never for less. */
interface ReadSelector {
  readonly text: string
  readonly isBroken: boolean
}

const NOTHING_READ: ReadSelector = { text: '', isBroken: false }

function ignoredText(name: string, { text, isBroken }: ReadSelector): string[] {
  if (!isBroken) return []
  const extent = text === '' ? '' : 'partially '
  return [`spec.resourceAttributes.${name} ${extent}ignored due to parse error`]
}

function readFields(selector: FieldSelectorAttributes | undefined): ReadSelector {
  const { rawSelector = '', requirements = [] } = selector ?? {}
  if (requirements.length === 0) return readRaw(rawSelector, (text) => fieldSelectorText(parseFieldSelector(text)))
  const understood = requirements.filter(
    ({ operator, values = [] }) => (operator === 'In' || operator === 'NotIn') && values.length === 1,
  )
  const text = fieldSelectorText({
    requirements: understood.map(({ key, operator, values = [] }) => ({
      field: key,
      operator: operator === 'In' ? '=' : '!=',
      value: values[0] ?? '',
    })),
  })
  return { text, isBroken: understood.length < requirements.length }
}

function readLabels(selector: LabelSelectorAttributes | undefined): ReadSelector {
  const { rawSelector = '', requirements = [] } = selector ?? {}
  if (requirements.length === 0) return readRaw(rawSelector, (text) => selectorText(parseSelector(text)))
  const texts = requirements.map((one) => readRaw('x', () => selectorText(asSelector({ matchExpressions: [one] }))))
  return {
    text: texts.flatMap(({ text, isBroken }) => (isBroken ? [] : [text])).join(','),
    isBroken: texts.some(({ isBroken }) => isBroken),
  }
}

/** Selectors of real requests are part of a URL, which is shorter. Parsing megabytes would keep all others waiting. */
const MAX_RAW_LENGTH = 64 << 10

function readRaw(raw: string, canonical: (text: string) => string): ReadSelector {
  if (raw === '') return NOTHING_READ
  if (raw.length > MAX_RAW_LENGTH) return { text: '', isBroken: true }
  try {
    return { text: canonical(raw), isBroken: false }
  } catch {
    return { text: '', isBroken: true }
  }
}

export function validateQuestion(spec: Asked): FieldError[] {
  const { resourceAttributes, nonResourceAttributes } = spec
  const errors: FieldError[] = []
  if (resourceAttributes !== undefined && nonResourceAttributes !== undefined) {
    const why = 'cannot be specified in combination with resourceAttributes'
    errors.push(invalid('spec.nonResourceAttributes', nonResourceAttributes, why))
  }
  if (resourceAttributes === undefined && nonResourceAttributes === undefined) {
    const why = 'exactly one of nonResourceAttributes or resourceAttributes must be specified'
    errors.push(invalid('spec.resourceAttributes', null, why))
  }
  return errors
}

export function validateSubject({ user = '', groups = [] }: SubjectAccessReviewSpec): FieldError[] {
  return user === '' && groups.length === 0
    ? [invalid('spec.user', user, 'at least one of user or group must be specified')]
    : []
}

export function validateSelectors({ resourceAttributes = {} }: Asked): FieldError[] {
  const { fieldSelector, labelSelector } = resourceAttributes
  return [
    ...validateSelector('spec.resourceAttributes.fieldSelector', fieldSelector, validateFieldRequirement),
    ...validateSelector('spec.resourceAttributes.labelSelector', labelSelector, validateLabelRequirement),
  ]
}

function validateSelector<R>(
  path: string,
  selector: { readonly rawSelector?: string; readonly requirements?: readonly R[] } | undefined,
  validate: (path: string, requirement: R) => FieldError[],
): FieldError[] {
  if (selector === undefined) return []
  const { rawSelector = '', requirements = [] } = selector
  const errors: FieldError[] = []
  if (rawSelector !== '' && requirements.length > 0) {
    errors.push(invalid(child(path, 'rawSelector'), rawSelector, 'may not specified at the same time as requirements'))
  }
  if (rawSelector === '' && requirements.length === 0) {
    const why = `when ${path} is specified, requirements or rawSelector is required`
    errors.push(required(child(path, 'requirements'), why))
  }
  return [...errors, ...requirements.flatMap((one, at) => validate(index(child(path, 'requirements'), at), one))]
}

/** Operators of clients newer than this server are let through: what they narrow is then ignored. */
function validateLabelRequirement(path: string, requirement: LabelSelectorRequirement): FieldError[] {
  return validateLabelSelectorRequirement(path, requirement, { unknownOperators: true })
}

function validateFieldRequirement(
  path: string,
  { key, operator, values = [] }: FieldSelectorRequirement,
): FieldError[] {
  const errors = key === '' ? [required(child(path, 'key'), 'must be specified')] : []
  const list = child(path, 'values')
  if ((operator === 'In' || operator === 'NotIn') && values.length === 0) {
    errors.push(required(list, "must be specified when `operator` is 'In' or 'NotIn'"))
  }
  if ((operator === 'Exists' || operator === 'DoesNotExist') && values.length > 0) {
    errors.push(forbidden(list, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
  }
  return errors
}

/** A review is a question, not an object. */
export function validateNoMetadata({ metadata }: KubeObject, allowed: readonly string[] = []): FieldError[] {
  const set = Object.entries(metadata).filter(
    ([name, value]) => !allowed.includes(name) && name !== 'managedFields' && value !== undefined && value !== '',
  )
  if (set.length === 0) return []
  const except = allowed.length === 0 ? '' : ` except for ${allowed.join(' and ')}`
  return [invalid('metadata', metadata, `must be empty${except}`)]
}
