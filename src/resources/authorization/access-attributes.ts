/** The parts that access reviews share: attributes, validation and status. */
import type {
  FieldSelectorAttributes,
  LabelSelectorAttributes,
  NonResourceAttributes,
  ResourceAttributes,
  SubjectAccessReviewSpec,
  SubjectAccessReviewStatus,
} from '#apis/authorization/v1.ts'
import type { FieldSelectorRequirement } from '#apis/meta/v1.ts'
import { type Access, pathAccess, resourceAccess, type Verdict } from '#auth/authorizer.ts'
import type { User } from '#auth/user.ts'
import { fieldSelectorText, parseFieldSelector } from '#meta/fields.ts'
import { asSelector, type LabelSelectorRequirement, validateLabelSelectorRequirement } from '#meta/label-selector.ts'
import { parseSelector, selectorText } from '#meta/labels.ts'
import type { KubeObject } from '#meta/object.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'

/** The attributes, and the selector parts that could not be parsed. */
export interface Question {
  readonly access: Access
  readonly ignored: readonly string[]
}

interface ReviewSpec {
  readonly resourceAttributes?: ResourceAttributes
  readonly nonResourceAttributes?: NonResourceAttributes
}

export function questionFrom({ resourceAttributes, nonResourceAttributes }: ReviewSpec): Question {
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

/**
 * The parsed requirements as text. All requirements must match, so omitting one asks for more access, never for less.
 */
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

/** Selectors in real requests are limited by the length of a URL. Parsing megabytes would block other requests. */
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

export function validateQuestion(spec: ReviewSpec): FieldError[] {
  const { resourceAttributes, nonResourceAttributes } = spec
  return collectErrors(
    resourceAttributes !== undefined &&
      nonResourceAttributes !== undefined &&
      fieldPath('spec.nonResourceAttributes').invalid(
        nonResourceAttributes,
        'cannot be specified in combination with resourceAttributes',
      ),
    resourceAttributes === undefined &&
      nonResourceAttributes === undefined &&
      fieldPath('spec.resourceAttributes').invalid(
        null,
        'exactly one of nonResourceAttributes or resourceAttributes must be specified',
      ),
  )
}

export function validateSubject({ user = '', groups = [] }: SubjectAccessReviewSpec): FieldError[] {
  return user === '' && groups.length === 0
    ? [fieldPath('spec.user').invalid(user, 'at least one of user or group must be specified')]
    : []
}

export function validateSelectors({ resourceAttributes = {} }: ReviewSpec): FieldError[] {
  const { fieldSelector, labelSelector } = resourceAttributes
  return [
    ...validateSelector(fieldPath('spec.resourceAttributes.fieldSelector'), fieldSelector, validateFieldRequirement),
    ...validateSelector(fieldPath('spec.resourceAttributes.labelSelector'), labelSelector, validateLabelRequirement),
  ]
}

function validateSelector<R>(
  path: FieldPath,
  selector: { readonly rawSelector?: string; readonly requirements?: readonly R[] } | undefined,
  validate: (path: FieldPath, requirement: R) => FieldError[],
): FieldError[] {
  if (selector === undefined) return []
  const { rawSelector = '', requirements = [] } = selector
  return collectErrors(
    rawSelector !== '' &&
      requirements.length > 0 &&
      path.child('rawSelector').invalid(rawSelector, 'may not specified at the same time as requirements'),
    rawSelector === '' &&
      requirements.length === 0 &&
      path.child('requirements').required(`when ${path} is specified, requirements or rawSelector is required`),
    path.child('requirements').each(requirements, validate),
  )
}

/** Operators of newer clients are accepted and ignored. */
function validateLabelRequirement(path: FieldPath, requirement: LabelSelectorRequirement): FieldError[] {
  return validateLabelSelectorRequirement(path, requirement, { unknownOperators: true })
}

function validateFieldRequirement(
  path: FieldPath,
  { key, operator, values = [] }: FieldSelectorRequirement,
): FieldError[] {
  const list = path.child('values')
  return collectErrors(
    key === '' && path.child('key').required('must be specified'),
    (operator === 'In' || operator === 'NotIn') &&
      values.length === 0 &&
      list.required("must be specified when `operator` is 'In' or 'NotIn'"),
    (operator === 'Exists' || operator === 'DoesNotExist') &&
      values.length > 0 &&
      list.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
  )
}

/** A review is a question, not a stored object. */
export function validateNoMetadata({ metadata }: KubeObject, allowed: readonly string[] = []): FieldError[] {
  const set = Object.entries(metadata).filter(
    ([name, value]) => !allowed.includes(name) && name !== 'managedFields' && value !== undefined && value !== '',
  )
  if (set.length === 0) return []
  const except = allowed.length === 0 ? '' : ` except for ${allowed.join(' and ')}`
  return [fieldPath('metadata').invalid(metadata, `must be empty${except}`)]
}
